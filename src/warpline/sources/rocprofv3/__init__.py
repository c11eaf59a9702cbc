"""rocprofv3 (ROCm): read its databases (rocpd), its JSON and its Perfetto traces as rows."""

from __future__ import annotations

from warpline.sources.rocprofv3.database import ROCPD, read_rocpd
from warpline.sources.rocprofv3.json_file import ROCPROFV3_JSON, read_rocprofv3_json
from warpline.sources.rocprofv3.perfetto_file import PERFETTO, read_pftrace

__all__ = ["PERFETTO", "ROCPD", "ROCPROFV3_JSON", "read_pftrace", "read_rocpd", "read_rocprofv3_json"]
