"""What one text becomes, and which texts are left alone."""

from __future__ import annotations

import json
import random
import string

import pytest
from paths import ROOT

from warpline.scrub.kinds import REMOVED, Kind
from warpline.scrub.secrets import looks_random
from warpline.scrub.text import Scrubber

REPLACED = {
    "/home/alice/project/train.py(12): main": "/home/user-1/project/train.py(12): main",
    "/var/home/alice/x": "/var/home/user-1/x",
    "/global/u1/a/alice/run.sh": "/global/u1/user-1/run.sh",
    "PYTHONPATH=/home/alice/a:/home/bob/b": "PYTHONPATH=/home/user-1/a:/home/user-2/b",
    'File "/Users/alice/x.py", line 3': 'File "/Users/user-1/x.py", line 3',
    "C:\\Users\\Alice B\\x.py": "C:\\Users\\user-1\\x.py",
    "/mnt/c/Users/alice/x.py": "/mnt/c/Users/user-1/x.py",
    "/scratch/team/alice/proj/train.py(3): f": "/scratch/dir-1/proj/train.py(3): f",
    "/mnt/team": "/mnt/dir-1",
    "/data/env/lib/python3.11/site-packages/torch/nn/modules/module.py(1): f": "/data/dir-1/lib/python3.11/site-packages/torch/nn/modules/module.py(1): f",
    "/acme/llm/train.py(3): f": "/dir-1/llm/train.py(3): f",
    "/tmp/torchinductor_alice/ab/cab.py": "/tmp/torchinductor_user-1/ab/cab.py",
    "rank 0 at 10.1.2.3:29500, rank 1 at 10.1.2.4, again 10.1.2.3": "rank 0 at 240.0.0.1:29500, rank 1 at 240.0.0.2, again 240.0.0.1",
    "ether 9c:6b:00:a1:b2:c3 up": "ether 02:00:00:00:00:01 up",
    "GPU-8c2b1f3e-5d4a-4b6c-9e8f-7a6b5c4d3e2f": "GPU-00000000-0000-0000-0000-000000000001",
    "mail alice@acme.co today": "mail user-1@example.com today",
    "https://wandb.acme.co/runs/7": "https://host-1/(removed)",
    "http://localhost:8888/lab?token=abc1": "http://localhost:8888/lab?(removed)",
    "tcp://10.9.8.7:29500": "tcp://240.0.0.1:29500",
    "git@github.com:acme/secret.git": "(removed)",
    "registry.acme.io/team/train:v3": "host-1/(removed)",
    "HF_TOKEN=abcdef rest": "HF_TOKEN=(removed) rest",
    "{'api_key': 'abc123def'}": "{'api_key': '(removed)'}",
    "python train.py --wandb-token abc123 --steps 3": "python train.py --wandb-token (removed) --steps 3",
    "HOSTNAME=node17": "HOSTNAME=host-1",
    "a\0HOME=/root\0X=1": "(removed)",
    "A=1\nB=2\nC=3\nD=4\nthen text": "(removed)\nthen text",
}


@pytest.mark.parametrize("text", REPLACED)
def test_what_leaks_is_replaced(text: str) -> None:
    cleaned, kinds = Scrubber().clean(text)
    assert cleaned == REPLACED[text]
    assert kinds


@pytest.mark.parametrize("text", REPLACED)
def test_a_clean_text_stays_as_it_is(text: str) -> None:
    assert Scrubber().clean(REPLACED[text]) == (REPLACED[text], ())


HARMLESS = [
    "torch/nn/modules/module.py(1773): _call_impl",
    "/opt/conda/lib/python3.11/site-packages/torch/_ops.py(1050): __call__",
    "/usr/lib/python3/dist-packages/numpy/core/multiarray.py(152): dot",
    "/root/train.py(4): step",
    "/workspace/project/train.py(4): step",
    "/home/ubuntu/train.py(4): step",
    "<built-in method _VariableFunctions.linear of type object at 0x7f2b3c4d5e6f>",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, float)",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64MultiCtasKvVarSeqQ8Kv128StaticSwapsAbForGen",
    "/tmp/torchinductor_root/bh/cbhq4fl2xj3zvyytlnf4vt5mb4jc6jxqkvqgd2qbmqjn7z4yqxkm.py",
    "libcurand 10.3.2.106, cudnn version 9.1.0.70, nvidia-cublas-cu12==12.4.5.8, /opt/x/1.15.2.0/lib",
    "2025.3.1.90",
    "max_new_tokens=128 cls_token=None token_type_ids=2 num_key=4 sort_key=int",
    "XBLOCK=1024,RBLOCK=8",
    "nvcr.io/nvidia/pytorch:25.10-py3",
    "see https://docs.nvidia.com/nsight-systems and https://pytorch.org/docs",
    "tcp://127.0.0.1:29500",
    "pthread_create@@GLIBC_2.34",
    "kworker/0:1-events",
    "0000:3b:00.0",
    "2026-11-15T07:27:01",
    "threading.local",
    "ProfilerStep#3",
    "Memcpy HtoD (Pageable -> Device)",
    "forward/layer/attention",
    "/forward/attention",
    "A100-SXM4-80GB",
    "7d842d2f27d4856f7a39d21159888d880c4ede43",
    REMOVED,
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_identifies_nobody_is_left_alone(text: str) -> None:
    assert Scrubber().clean(text) == (text, ())


def test_no_name_of_a_kernel_is_taken_for_a_secret() -> None:
    lines = (ROOT / "tests" / "kernels" / "labelled.jsonl").read_text().splitlines()
    names = [json.loads(line)["name"] for line in lines]
    assert len(names) > 200
    assert [name for name in names if Scrubber().clean(name)[1]] == []


def test_most_random_texts_are_recognised() -> None:
    chance = random.Random(5)
    letters = string.ascii_letters + string.digits + "-_"
    words = ["".join(chance.choice(letters) for _ in range(40)) for _ in range(1000)]
    assert sum(map(looks_random, words)) > 850


def test_names_that_a_field_gives_away_are_found_in_other_texts() -> None:
    scrubber = Scrubber()
    scrubber.learn("HOSTNAME=zeppelin-gpu-17.hpc.acme.co")
    scrubber.learn_user("annie.easley")
    assert scrubber.clean("srun: zeppelin-gpu-17: task 0")[0] == "srun: host-1: task 0"
    assert scrubber.clean("/opt/runs/annie.easley/x.py(1): f")[0] == "/opt/runs/user-1/x.py(1): f"
    assert scrubber.clean("started by annie.easley")[0] == "started by user-1"


def test_an_account_that_is_also_a_word_does_not_spoil_libraries() -> None:
    scrubber = Scrubber()
    scrubber.learn("/home/adam/train.py")
    scrubber.learn("/home/linear/train.py")
    for text in (
        "torch/optim/adam.py(120): step",
        "aten::linear",
        "nn.Module: Linear_0",
        "torch/nn/modules/linear.py(1): f",
    ):
        assert scrubber.clean(text) == (text, ())


def test_a_host_named_like_a_chip_does_not_rename_the_chip() -> None:
    scrubber = Scrubber()
    scrubber.learn_host("h100")
    assert scrubber.clean("NVIDIA h100 PCIe") == ("NVIDIA h100 PCIe", ())


@pytest.mark.parametrize("kind", [Kind.USER, Kind.HOST, Kind.ADDRESS, Kind.TOKEN, Kind.PATH, Kind.URL, Kind.IDENTIFIER])
def test_a_kept_kind_is_not_touched(kind: Kind) -> None:
    texts = {
        Kind.USER: "/home/alice/x",
        Kind.HOST: "HOSTNAME=node17",
        Kind.ADDRESS: "10.1.2.3",
        Kind.TOKEN: "password=hunter22",
        Kind.PATH: "/scratch/team/x/y.py",
        Kind.URL: "s3://bucket/key",
        Kind.IDENTIFIER: "8c2b1f3e-5d4a-4b6c-9e8f-7a6b5c4d3e2f",
    }
    assert Scrubber().clean(texts[kind])[1] == (kind,)
    assert Scrubber([kind]).clean(texts[kind]) == (texts[kind], ())


def test_an_environment_that_is_kept_is_still_searched_for_tokens() -> None:
    cleaned, kinds = Scrubber([Kind.ENVIRONMENT]).clean("LANG=C\0API_TOKEN=abc123\0HOME=/home/alice")
    assert cleaned == "LANG=C\0API_TOKEN=(removed)\0HOME=/home/user-1"
    assert set(kinds) == {Kind.TOKEN, Kind.USER}


@pytest.mark.parametrize(
    "text",
    ["-" * 200_000, "--token" * 30_000, "/a" * 100_000, "a." * 100_000, "secret_" * 30_000 + ":", "ab:" * 60_000],
    ids=["dashes", "options", "folders", "dots", "names", "pairs"],
)
def test_long_texts_take_time_in_proportion(text: str) -> None:
    """Text on which a careless pattern would run for hours; here it ends."""
    Scrubber().clean(text)
