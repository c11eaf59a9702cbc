"""Writes the words of public libraries that ``warpline scrub`` lets pass: ``known_words.txt`` and ``known_shapes.txt``.

    python tests/data/record/known_words.py kernel_names.jsonl

Kernel names come from the file (one JSON object with a ``name`` a line); op, module and function names from the
installed torch and Python; the words of decoders and analyses from warpline's own patterns. Only words are written,
never names, one a line: lower-case words of at least three letters, and the shapes of shorter pieces, with ``#`` for
digits (``sm#``, ``#x#x#``).
"""

from __future__ import annotations

import ast
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import torch

from warpline.kernels.mangled import demangle

OWN = Path(__file__).resolve().parents[3] / "src" / "warpline"
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
PIECE = re.compile(r"[A-Za-z0-9]+")
HASH = re.compile(r"_GLOBAL__N__\w+|tmpxft_\w+|\b[0-9a-f]{7,}\b|\bc[a-z0-9]{50,}|0x[0-9a-f]+")
TORCH_FUNCTIONS = re.compile(
    r"torch/(nn|optim|utils/data|autograd|cuda|profiler|amp|_dynamo|_functorch|[a-z_]+\.py|distributed/[a-z_0-9]+\.py"
    r"|_inductor/(codecache|graph|runtime|compile_fx|utils|scheduler)|fx/[a-z_]+\.py|jit/[a-z_]+\.py)"
)
PYTHON_FILES = (
    "threading contextlib functools queue selectors runpy inspect weakref json logging random tempfile pickle copy "
    "socket subprocess concurrent multiprocessing importlib asyncio shutil os typing abc enum dataclasses warnings"
)
OWN_PATTERNS = (
    "kernels/*.py trace/*.py hardware/*.py analyses/idle/host_activity.py analyses/framework.py "
    "sources/nsys/diagnostics.py sources/nsys/host.py"
)
FURTHER = """
    accept antialias application attention avx backtraces batch benchmark bert bidirectional boxes buffers capture checkpoint
    clockwait collected container context cufft cupti curand cusolver cusparse debuginfod decoding device diffusers
    driver driven embedding encoder epoch events examples exit fclose fflush fgetc flockfile fopen fork fputc fputs fwrite
    generate generation geforce graphics head heads hidden image inference injection injections input installed
    instrumentation instinct iteration kernels laptop layer layers linear listen logits loss lstat management memory
    metrics miopen mlp model modeling models mprotect munmap nsight numpy nvidia nvtx output permission pipeline pipelines please
    pread predict prefill processor profiled profiler profiling quadro radeon recommended report request runtime sample
    sampling scheduler service sigaction started step steps supported symbols systems target tesla thread threads titan
    token tokens torchvision trace traced train trainer training transformer transformers trylock umath unsupported vision
    waitpid warmup worker workers
    alma alpine amazon centos debian enterprise fedora gnu hat linux lts microsoft red rocky suse ubuntu windows wsl
    active allocation async attribute attributes begin blocks callback can capabilities cluster clusters cooperative
    current destroy elapsed enable entry exchange exec flags flush free func function get graph handle host instantiate
    interaction ipc is labels last launch limit linked malloc map mem memcpy memset module multiprocessor node occupancy
    peek peer pointer pool potential prefetch priority properties query record register reserve reset set size sort
    stream support synchronize synchronized unlinked unload unmap update upload value wait write height width pixel
"""
PACKAGES = """
    accelerate audiocraft autoawq autogptq bitsandbytes cellpose colossalai composable cugraph cudf cuml cupy cutlass datasets
    deepspeed detectron diffusers einops fairscale fairseq faiss flashattn flashinfer fsspec gsplat huggingface ipykernel
    jupyter keras kornia lightning lmdeploy mamba matplotlib megablocks megatron mmcv mmdet mmengine mosaicml mpi4py
    nerfstudio nvfuser onnx onnxruntime opacus openai opencv optimum pandas peft polars protobuf pyarrow pydantic pytorch
    pytorchvideo quanto rotated safetensors scipy sentencepiece sglang sklearn spconv speechbrain spline stable starlette
    tensorboard tensordict tensorflow tensorpipe tensorrt tilelang tokenizers torchao torchaudio torchdata torchmetrics
    torchrec torchrl torchscale torchsparse torchtext torchtitan torchtune torchvision torchx tqdm transformerengine ultralytics
    unsloth uvicorn vllm wandb webdataset whisper xformers xgboost
    blockdim griddim nbits nchw nchwkcrs nhwc
    cufile dcgm expandable fragmentation gqa ldmatrix machete mbarrier multicast ncu nvls nvswitch oom stmatrix streamk swizzled torchrun xqa
"""
"""Public packages of the PyTorch world, and words of their kernels. Only a list may let names pass: what is installed on a
machine, or named in the paths of a file, may be a private package, whose name is a secret. Names of people are left out."""
MODELS = """
    autoencoder bottleneck convnext deberta deepseek distil electra equivariant evoformer excitation falcon fla flux fourier inverted
    longformer mistral mixtral moe neo pairformer phi prodigy pyg qwen resnet roberta rwkv shampoo soap squeeze swin top topp triangle unet vit
    vocab voxel wav yolo
    csrmm csrmv geqrf gesvd gesvda gesvdj getrf getrs herk llmc orgqr ormqr potrf potrs sddmm spmm syevd syevj syrk syrkx trmm trsm
"""
"""Public models, optimizers and packages of graph and sequence models, and routines of NVIDIA's libraries. Names that
people also have are left out."""
SHORT = "fn ll128 py op so si fb fw bw ac2g fwdbwd cu kv qk io id ip os ui ml nn nd gpt2 v1 v2 ddp cpp f2x3 f3x2 t5"
"""Words of nsys's messages, of the operating system's calls, of devices, and what every training loop is made of."""

SYSTEM_CALLS = """
    accept4 access bind brk chmod clock_nanosleep clone3 close connect creat dlopen dlclose dlsym dup2 epoll_create1 epoll_ctl
    epoll_pwait epoll_wait eventfd2 execve fallocate fclose fcntl64 fdatasync fdopen fflush fgetc fgets fileno flock flockfile
    fopen64 fork fprintf fputc fputs fread freopen fscanf fseek fseeko fstat64 fstatat64 fsync ftell ftruncate64 futex fwrite
    getc getchar getcwd getdelim getdents64 getline getpid getrandom gettid inotify_init1 io_getevents io_submit ioctl kill
    listen llseek lseek64 lstat64 madvise mkfifo mknod mlock mmap64 mount mprotect mq_receive mq_send mremap msgget msgrcv msgsnd
    msync munmap nanosleep newfstatat openat64 opendir pause pclose pipe2 poll popen ppoll prctl pread64 preadv printf prlimit64
    pselect6 pthread_barrier_wait pthread_cond_broadcast pthread_cond_clockwait pthread_cond_signal pthread_cond_timedwait
    pthread_cond_wait pthread_create pthread_join pthread_kill pthread_mutex_lock pthread_mutex_timedlock
    pthread_mutex_trylock pthread_mutex_unlock pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock
    pthread_rwlock_unlock pthread_rwlock_wrlock pthread_spin_lock pthread_spin_unlock pthread_timedjoin_np ptrace putc putchar
    puts pwrite64 pwritev readahead readdir64 readlink readv recvfrom recvmmsg recvmsg rename rewind rmdir sched_yield select
    sem_clockwait sem_close sem_open sem_post sem_timedwait sem_trywait sem_wait semget semop semtimedop sendfile64 sendmmsg
    sendmsg sendto setvbuf shmat shmdt shmget shutdown sigaction signalfd4 sigsuspend sigtimedwait sigwait sigwaitinfo sleep
    socket socketpair splice stat64 statfs statx syncfs sync_file_range sysinfo system tee tgkill timerfd_create tmpfile truncate
    umount2 unlinkat usleep vfork vfprintf vmsplice vprintf wait3 wait4 waitid waitpid writev jemalloc kworker migration rcu
"""
"""Calls that nsys traces, in the longest of their spellings."""

words: set[str] = set()
shapes: set[str] = set()


def add(text: str, with_shapes: bool = False) -> None:
    for piece in PIECE.findall(text):
        parts = [part.lower() for part in WORD.findall(piece)]
        words.update(part for part in parts if len(part) >= 3 and not part.isdigit())
        odd = any(part.isdigit() or len(part) < 3 for part in parts) and not piece.isdigit()
        shape = re.sub(r"\d+", "#", piece.lower())
        if with_shapes and odd and shape.count("#") <= 6 and len(shape) <= 24:
            shapes.add(shape)


def kernels(path: Path) -> Iterator[str]:
    for line in path.read_text().splitlines():
        name = json.loads(line)["name"]
        found = demangle(name) if name.startswith("_Z") else name
        yield HASH.sub("", found or "")


def definitions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(errors="replace"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def literals(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield re.sub(r"\\[bdwsDWS]|\\x..|\\u....", " ", node.value)


for name in kernels(Path(sys.argv[1])):
    add(name, with_shapes=True)
for schema in torch._C._jit_get_all_schemas():
    add(schema.name, with_shapes=True)
for name in sys.stdlib_module_names:
    add(name)
root = Path(torch.__file__).parent
for file in sorted(root.rglob("*.py")):
    relative = file.relative_to(root.parent).as_posix()
    if "test" not in relative:
        add(relative)
        if TORCH_FUNCTIONS.match(relative):
            for name in definitions(file):
                add(name)
for top in PYTHON_FILES.split():
    home = Path(threading.__file__).parent
    for file in [*home.glob(f"{top}.py"), *(home / top).glob("*.py")]:
        for name in definitions(file):
            add(name)
for pattern in OWN_PATTERNS.split():
    for file in OWN.glob(pattern):
        for text in literals(file):
            add(text)
for module in (torch.nn, torch.optim, torch.nn.functional, torch, torch.Tensor, torch.cuda, torch.optim.lr_scheduler):
    for name in dir(module):
        add(name)
add(FURTHER)
add(PACKAGES)
add(MODELS)
add(SHORT, with_shapes=True)
add(SYSTEM_CALLS, with_shapes=True)
add("session callchain uuid bus location osrt streams wddm schema")
words -= {"ann", "pwd", "secrets", "whatever"}  # a name, and words of passwords
for file, listed in (("known_words.txt", words), ("known_shapes.txt", shapes)):
    (OWN / "scrub" / file).write_text("".join(f"{one}\n" for one in sorted(listed)), "ascii")
