"""Names of kernels, ops, calls, ranges and threads without what a person may have written into them.

The name of a kernel, an op or a call keeps its known words, in place: ``acme_gemm_fp16`` becomes ``nameB_gemm_fp16``,
which still decodes as a GEMM. A text that is no such name at all (a URL, a key, an assignment) becomes one pseudonym. A
range, a thread or a process has a name that a person chose: it is a pseudonym unless it is one of the forms below.
"""

from __future__ import annotations

import re

from warpline.kernels.mangled import renamed
from warpline.quote import redacted
from warpline.scrub.vocabulary import CODE_LETTERS, MAX_DIGITS, is_known

MAX_NAME_CHARS = 32_768
"""The decoder of kernel names reads no more."""
PIECE = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_KERNEL = re.compile(r"[A-Za-z0-9_:<>,()&*\[\]{}~ #$'.\-!|=+]*")
_NO_KERNEL = re.compile(
    r"(?<!:)(?<!auto):(?!:)|[^\W_]-[^\W_]|\d \d|\d{4}_\d{4}_\d{4}"
    r"|\.(?!\.|(?<=\.\.)|kd\b|(?<=clone \.)|\d{1,4}(?![\w.]))"
    r"|(?<!int)(?<!bool)(?<!long)(?<!short)(?<!char)(?<!Type)(?<!unsigned)(?<!=)=(?!=)"
)
"""Marks that no kernel's name has: of paths, URLs, times, addresses and telephone numbers."""
_OP = re.compile(r"[A-Za-z0-9_:<>,()&*\[\]{}~ #.\-|/]*")
_NO_OP = re.compile(r"\d[ .:-]\d|://|(?<!\w)/\w")
_CHAIN = re.compile(r"(?<!\d)\d++(?:[ .:/_-]\d++)+")
_SIZE_CHARS = frozenset("0123456789_")
MAX_SIZE_DIGITS = 12
"""Digits of the sizes of a tile or a problem, as in ``256_128_32``."""
ADDRESS_NUMBERS = 4
SMALL_SIZE, TILE = 16, 8
"""Sizes of tiles are small, or multiples of eight."""
_LITERAL = re.compile(r"L[a-z]n?(\d+)E")
_NO_COUNTER = re.compile(r"\d[A-Za-z:.@%=-]|(?<![A-Za-z])[A-Za-z]{1,2}\d|[^\w .#:/()\[\]|-]")
"""Digits within a word, or beside marks that keys, addresses and assignments have."""
MAX_COUNTERS = 3
_WHOLE = re.compile(r"(?:kernel|op|range|domain|thread|process)[A-Z]{1,6}(?:_[a-z_]++)?(?: [0-9]{1,5})*")
_COMPILED = re.compile(r"(## Call CompiledFxGraph )(\w{1,80})( ##)")
_TEMPLATE_HASH = re.compile(r"(?<=_GLOBAL__N__)[0-9a-f]{8}|(?<=_cu_)[0-9a-f]{8}(?![0-9a-f])")
_LISTED = """
    forward backward fwd bwd loss optimizer optim step steps train training eval evaluate validation inference
    infer iter iteration epoch batch data load loader input output warmup zero grad zero_grad update sync
    compute copy prefill decode generate layer layers block mlp attention attn head embedding norm linear
    softmax matmul gemm conv main init call next enter exit getitem len del new module lambda listcomp genexpr
    dictcomp setcomp wrapper inner run loop
"""
HARMLESS_WORDS = frozenset(_LISTED.split())
"""What every program calls its parts."""

KNOWN_RANGES = re.compile(
    r"ProfilerStep\*?#\d{1,9}|ProfilerStep\*|Optimizer\.(?:step|zero_grad)#[A-Za-z][\w.]{0,60}"
    r"|enumerate\(DataLoader\)#_\w{1,40}\.__next__|(?:DistributedDataParallel|FullyShardedDataParallel|DataParallel)\.\w{1,40}"
    r"|FSDP::[\w:]{1,60}|(?:nccl|gloo|mpi|ucc|c10d):+[\w:]{1,60}|(?:autograd|aten|cub|torch)::[\w: ]{1,100}"
    r"|Torch-Compiled Region(?:: \d{1,4}(?:/\d{1,4})?)?|CompiledFunction(?:Backward)?|Pregraph[\w ]{0,40}"
    r"|CUDAGraphNode\.\w{1,40}(?:: is_backward=(?:True|False), compile_id=\d{1,4}/\d{1,4})?|\[memory\]"
    r"|execute_(?:new_|context_|model|\d{1,6}_context_)[\w()]{0,120}|(?:step|prefill|decode)\[[\w =]{0,80}\]"
    r"|\[Executor\] _forward_step \d{1,9}|\[pl\]\[profile\]run_training_batch"
    r"|PyTorch Profiler \(0\)|Iteration Start: PyTorch Profiler|Record Window End|\[pytorch\|profiler\|[\w|]{1,60}\]"
    r"|(?:Activity )?Buffer Request|Memcpy[\w ()>-]{0,60}|Memset[\w ()]{0,40}",
    re.ASCII,
)
"""Ranges that torch and its libraries name themselves; what is variable in them still passes word by word."""

RANGE_TELLS = re.compile(
    r"(?i)layer|block|stage|head|expert|level|attention|attn|mlp|micro|chunk|bucket|dataloader|data_?load|load_?data"
    r"|next_batch|get_batch|imread|CompiledFxGraph|CompiledFunction|profiling|Buffer|CUPTI"
    r"|Instrumentation|Resource|dlopen|dlclose|JIT|LAZY"
)
"""Words by which analyses recognise parts of a step, loading and the profiler itself. They stay in a pseudonym."""

KERNEL_TELLS = re.compile(
    r"(?i)gemm|matmul|conv|softmax|layer_?norm|rms_?norm|batch_?norm|attention|attn|fmha|reduce|elementwise|transpose|copy"
    r"|all_?reduce|all_?gather|nccl|triton_(?:poi|red|per|tem)|adam|dropout|sort|topk|embedding|scatter|gather|quant"
)
"""Words that decide the class of a kernel."""

KNOWN_THREADS = re.compile(
    r"python[\d.]{0,6}|CPU|GPU ?\d{0,4}|stream (?:\d{1,10}|\([\w#]{0,12}\))?(?: \d{1,5}){0,2} ?|main"
    r"|thread \d{1,15}(?: \(python[\d.]{0,6}\))?|Spans|Traces|PyTorch Profiler|Trace|CPU functions|CUDA functions"
    r"|pt_main_thread|pt_autograd_\d{1,3}|pt_data_pin|pt_data_worker|pt_nccl_\w{1,10}|cuda-EvtHandlr|cuda\d{8,14}"
    r"|\[NSys\]|\[NSys Comms\]|CUPTI worker thread|TORCHRUN|julia(?:-[\d.]{1,8})?"
    r"|/device:GPU:\d{1,3}(?: [\w()]{0,12})?|/host:CPU|/host:python-tracer|Stream #\d{1,4}(?:\([A-Za-z,]{0,20}\))?"
    r"|Ascend(?: ?Hardware)?|CANN|HCCL|AI ?Core|NPU|TPU",
    re.ASCII,
)
"""Threads and processes that torch, CUDA and the profilers name themselves."""


class NameScrubber:
    """Replaces the names of one file; equal names stay equal, and different ones different."""

    def __init__(self, keep_names: bool = False) -> None:
        self.keep_names = keep_names
        self.pseudonyms = Pseudonyms()

    def kernel(self, text: str) -> str:
        """A kernel's name: demangled, mangled, or of Triton."""
        text = text[:MAX_NAME_CHARS]
        if text.startswith("_Z"):
            new = renamed(text, self._identifier)
            if new is not None and all(map(is_known, _LITERAL.findall(new))):
                return new
        elif _KERNEL.fullmatch(text) and not _NO_KERNEL.search(text):
            return self.pieces(_TEMPLATE_HASH.sub("00000000", text))
        return self._whole("kernel", text, KERNEL_TELLS)

    def op(self, text: str) -> str:
        """An op's name; the record functions of torch among them."""
        if KNOWN_RANGES.fullmatch(text):
            return self.pieces(text)
        if found := _COMPILED.fullmatch(text):
            return f"{found[1]}{self.pieces(found[2])}{found[3]}"
        if len(text) <= MAX_NAME_CHARS and _OP.fullmatch(text) and not _NO_OP.search(text):
            return self.pieces(text)
        return self._whole("op", text, RANGE_TELLS)

    def call(self, text: str) -> str:
        """A call of CUDA or of the operating system, a message of the profiler, a fixed label."""
        return self.pieces(text) if _OP.fullmatch(text) else self._whole("op", text, RANGE_TELLS)

    def range(self, text: str) -> str:
        """A name that a person gave to a part of the program: NVTX, record_function."""
        if KNOWN_RANGES.fullmatch(text) or _COMPILED.fullmatch(text):
            return self.op(text)
        return self._chosen("range", text, RANGE_TELLS)

    def domain(self, text: str) -> str:
        """An NVTX domain or category: those of libraries stay."""
        if re.fullmatch(r"[A-Za-z_]{1,24}", text) and all(map(is_known, PIECE.findall(text))):
            return text
        return self._chosen("domain", text, RANGE_TELLS)

    def thread(self, text: str) -> str:
        """A thread's name."""
        return text if KNOWN_THREADS.fullmatch(text) else self._chosen("thread", text, None)

    def process(self, text: str) -> str:
        """A process's name."""
        if KNOWN_THREADS.fullmatch(text):
            return text
        program = re.split(r"[/\\]", text)[-1]
        if re.fullmatch(r"python[0-9.]{0,6}|julia(-[0-9.]{1,8})?|torchrun|ray|vllm|nsys|ncu", program):
            return program
        return self._chosen("process", text, None)

    def pieces(self, text: str) -> str:
        """The text with a pseudonym for every piece that is not known."""
        text = _CHAIN.sub(self._chain, text)
        return PIECE.sub(lambda found: found[0] if is_known(found[0]) else self._name(found[0]), text)

    def _chain(self, found: re.Match[str]) -> str:
        """Numbers that follow each other: sizes and versions stay, an address or a card does not."""
        return found[0] if _is_plain_chain(found[0]) else self._name(found[0])

    def word(self, text: str) -> str:
        """One pseudonym of a text of any kind."""
        return f"text{self.pseudonyms.code('text', text)}"

    def _name(self, piece: str) -> str:
        return f"{'Name' if piece[:1].isupper() else 'name'}{self.pseudonyms.code('name', piece)}"

    def _identifier(self, text: str) -> str:
        return self.pieces(_TEMPLATE_HASH.sub("00000000", text))

    def _chosen(self, group: str, text: str, tells: re.Pattern[str] | None) -> str:
        """A name that a person chose."""
        if self.keep_names and (kept := redacted(text)) and kept.isprintable():
            return kept
        return text if is_harmless(text) else self._whole(group, text, tells)

    def _whole(self, group: str, text: str, tells: re.Pattern[str] | None) -> str:
        """One pseudonym, with the words that an analysis looks for and the numbers that tell equal names apart."""
        if is_pseudonym(text):
            return text
        numbers = _counters(text)
        skeleton = _DIGITS.sub("#", text) if numbers else text
        told = dict.fromkeys(found.lower() for found in tells.findall(text[:MAX_NAME_CHARS])) if tells else {}
        head = f"{group}{self.pseudonyms.code(group, skeleton)}"
        return " ".join(["_".join([head, *told]), *numbers])


def is_known_text(text: str) -> bool:
    """Whether a short text passes as it is: its words are known, and its numbers are sizes or versions."""
    return all(map(is_known, PIECE.findall(text))) and all(map(_is_plain_chain, _CHAIN.findall(text)))


def _is_plain_chain(text: str) -> bool:
    digits, numbers = sum(map(str.isdigit, text)), _DIGITS.findall(text)
    sized = set(text) <= _SIZE_CHARS and _are_sizes(numbers)
    return digits <= (MAX_SIZE_DIGITS if sized else MAX_DIGITS) and (sized or len(numbers) < ADDRESS_NUMBERS)


def _are_sizes(numbers: list[str]) -> bool:
    """Whether numbers may be sizes: without leading zeros, and no four that only an address of a machine has."""
    if any(number.startswith("0") and number != "0" for number in numbers):
        return False
    is_address = len(numbers) >= ADDRESS_NUMBERS and all(int(number) < 1 << 8 for number in numbers)
    return not is_address or all(int(number) <= SMALL_SIZE or int(number) % TILE == 0 for number in numbers)


def _counters(text: str) -> list[str]:
    """The numbers of a name that only count (``step 17``, ``layer.3``); none if there may be more to them."""
    numbers = _DIGITS.findall(text)
    few = len(numbers) <= MAX_COUNTERS and sum(map(len, numbers)) <= MAX_DIGITS
    return numbers if few and not _NO_COUNTER.search(text) else []


def is_pseudonym(text: str) -> bool:
    """Whether a text is already the pseudonym of a whole name."""
    return bool(_WHOLE.fullmatch(text)) and all(map(is_known, PIECE.findall(text)))


def is_harmless(text: str) -> bool:
    """Whether a name says nothing but ``forward``, ``layer 3`` or ``__init__``."""
    numbers = _DIGITS.findall(text)
    if sum(map(len, numbers)) > MAX_DIGITS or not re.fullmatch(r"[A-Za-z0-9_ .#<>-]{1,60}", text):
        return False
    return all(piece.isdigit() or piece.lower() in HARMLESS_WORDS for piece in re.findall(r"[A-Za-z]+|\d+", text))


class Pseudonyms:
    """The pseudonym of each text, by group and order of first appearance.

    The order gives nothing away and needs no key: unlike a hash, a pseudonym cannot be tested against a guess. The same
    file always gives the same pseudonyms.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[object, int]] = {}

    def number(self, group: str, value: object) -> int:
        """The number of a value within its group, from 0."""
        known = self._known.setdefault(group, {})
        return known.setdefault(value, len(known))

    def code(self, group: str, value: object) -> str:
        """The same in letters: B, C, … Z, BB, BC."""
        return letters(self.number(group, value))


def letters(number: int) -> str:
    """A number as letters without a gap: after Z comes BB.

    >>> letters(0), letters(11), letters(12)
    ('B', 'Z', 'BB')
    """
    text, number = "", number + 1
    while number:
        number, digit = divmod(number - 1, len(CODE_LETTERS))
        text = CODE_LETTERS[digit] + text
    return text
