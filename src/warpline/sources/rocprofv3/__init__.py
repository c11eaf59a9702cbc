"""rocprofv3 (ROCm): read its databases (rocpd) and its JSON as rows."""

from __future__ import annotations

from warpline.sources.rocprofv3.database import ROCPD, read_rocpd
from warpline.sources.rocprofv3.json_file import ROCPROFV3_JSON, read_rocprofv3_json

__all__ = ["ROCPD", "ROCPROFV3_JSON", "read_rocpd", "read_rocprofv3_json"]
