"""Names of kernels, ops, calls, ranges and threads without what a person may have written into them.

What stays depends on the place. The name of a kernel, an op or a call is an identifier of a program: it keeps its known
words, so that ``acme_gemm_fp16`` becomes ``nameB_gemm_fp16``, which still decodes as a GEMM. A text there that is no
identifier (a host, a URL, a path, a sentence) is one pseudonym, whatever its words. A range, a thread, a process or a
domain has a name that a person chose: it is a pseudonym unless it is one of the fixed forms below.
"""

from __future__ import annotations

import re

from warpline.kernels.mangled import renamed
from warpline.quote import redacted
from warpline.scrub.vocabulary import CODE_LETTERS, MAX_DIGITS, is_known, known_words

MAX_NAME_CHARS = 32_768
"""The decoder of kernel names reads no more."""
PIECE = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_LETTER = re.compile(r"[A-Za-z]")
"""Numbers alone are the name of nothing, and may be those of a person."""
_KERNEL = re.compile(r"[A-Za-z0-9_:<>,()&*\[\]{}~ #$'.\-!|=+]*")
_QUALIFIED = re.compile(r"[\w:~$#.]*(?: \[clone \.kd\]|\.kd)?", re.ASCII)
_NO_KERNEL = re.compile(
    r"(?<!:)(?<!auto):(?!:)|[^\W_]-[^\W_]|\d \d|\d{4}_\d{4}_\d{4}"
    r"|\.(?!\.|(?<=\.\.)|kd\b|(?<=clone \.)|\d{1,4}(?![\w.]))"
    r"|(?<!int)(?<!bool)(?<!long)(?<!short)(?<!char)(?<!Type)(?<!unsigned)(?<!=)=(?!=)"
)
"""Marks that no kernel's name has: of paths, URLs, times, addresses and telephone numbers."""
_CPP_WORDS = (
    "unsigned|signed|long|short|int|char|bool|float|double|void|const|volatile|static|auto|enum|struct|class|anonymous|namespace"
    "|lambda|operator|instance|clone|type|default|std|thrust|cub|at|c10|cutlass"
)
_SENTENCE = re.compile(rf"(?<!\w)(?!(?:{_CPP_WORDS})\b)\w+ (?!(?:{_CPP_WORDS})\b)\w")
"""Two words with a space between them, which C++ has only beside its own words."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,400}", re.ASCII)
_OP = re.compile(r"\w{1,400}(?:::\w{1,400}){0,6}(?:<\w{1,200}(?:::\w{1,200}){0,6}>|\.\d{1,5})?", re.ASCII)
"""An op: an identifier with namespaces before it; XLA numbers its own (``fusion.3``)."""
_CHAIN = re.compile(r"(?<!\d)(\d++(?:[ .:/_-]++\d++)+)[^\W_]*+")
"""Numbers that follow each other, and the letters that touch the last."""
_SIZE_CHARS = frozenset("0123456789_")
MAX_SIZE_DIGITS = 12
"""Digits of the sizes of a tile or a problem, as in ``256_128_32``."""
ADDRESS_NUMBERS = 4
"""Joined by marks that addresses have. Numbers with a comma between them are arguments of a template, never an address,
and stay: `gemm<10, 0, 0, 5>`."""
TILES = frozenset(size for power in (1 << bit for bit in range(8)) for size in (power, 3 * power))
"""Sizes of tiles are powers of two, or three of them: not 10, 127, 168 or 172, which begin a private address."""
_LITERAL = re.compile(r"L[a-z]n?(\d+)E")
_NO_COUNTER = re.compile(r"\d[A-Za-z:.@%=-]|(?<![A-Za-z])[A-Za-z]{1,2}\d|[^\w .#:/()\[\]|-]")
"""Digits within a word, or beside marks that keys, addresses and assignments have."""
MAX_COUNTERS = 3
_ODD = re.compile(r"\d[^\W\d_]")
"""Digits before letters: of keys, addresses and machines, and of few names that are not known (``conv2d``)."""
_GROUPS = re.compile(r"(?<!:):(?=:?[0-9A-Fa-f]{1,4}(?![^\W_]))|:(?=:\d)")
"""Groups of digits behind colons, as addresses have."""
_MARKED = re.compile(
    r"[/\\@~%]|\w-\w|(?<!:):(?!:)\w|\.(?i:com|org|net|edu|gov|internal|intranet|corp|lan|localdomain)(?!\w)"
)
"""Marks of paths, hosts and pairs. A host with another ending has the form of a module's name (`layers.0.attn`), and
nothing in its place tells the two apart: asked to keep names, both stay."""
_COMPILED = re.compile(r"(## Call CompiledFxGraph )(\w{1,80})( ##)")
_LOADED = re.compile(r"(dlopen|dlclose)\((.+)\)", re.DOTALL)
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
_HARMLESS = re.compile(r"(?:[A-Za-z0-9_ #<>]|\.(?=\d)){1,60}", re.ASCII)
"""No marks that hosts and paths have."""

_MEMORY = "Pageable|Pinned|Device|Host|Array|Managed|Unified|Unknown|Device Static|Managed Static|Peer"
_TOKENS = r"(?:\d{1,8}|(?:[sqk]{2,4}\d{1,8}){1,4})"
"""Numbers of tokens, as vLLM writes them."""
KNOWN_LABELS = re.compile(
    r"PyTorch Profiler \(0\)|Iteration Start: PyTorch Profiler|Record Window End|(?:Activity )?Buffer (?:Request|Flush)"
    r"|Driver Compiler|Lazy Function Loading|Runtime Triggered Module Loading|Command Buffer Full|Chunk Allocation"
    r"|TLS allocation|CUPTI (?:Buffer flush|Instrumentation|Resource Management)"
    r"|(?:CUDA|NVTX|OpenGL|Vulkan|OSRT) profiling (?:initialization|memory allocation|data flush on (?:process exit"
    r"|context created|cuInit finished))|(?:Stream|Event|Context) Sync|Stream Wait Event"
    rf"|execute_(?:\d{{1,5}}_)?context_\d{{1,5}}\({_TOKENS}\)_generation_\d{{1,5}}\({_TOKENS}\)"
    r"|(?:\[Executor\] _forward_step(?: \d{1,8})?|executeStep): \d{1,8} ctx reqs"
    r"(?:, \d{1,8} (?:ctx tokens|gen reqs)){1,2}"
    rf"|Memcpy (?:[HDPAU]to[HDPAU]|Unknown)(?: \((?:{_MEMORY})(?: -> (?:{_MEMORY}))?\))?|Memset(?: \((?:{_MEMORY})\))?",
    re.ASCII,
)
"""What CUPTI, nsys and torch's profiler call their own activities and copies, and serving engines their iterations."""
KNOWN_RANGES = re.compile(
    r"ProfilerStep\*?#\d{1,9}|ProfilerStep\*|Optimizer\.(?:step|zero_grad)#[A-Za-z]\w{0,60}\.(?:step|zero_grad)"
    r"|enumerate\(DataLoader\)#_\w{1,40}\.__next__|(?:DistributedDataParallel|FullyShardedDataParallel|DataParallel)\.\w{1,40}"
    r"|FSDP::[\w:]{1,60}|(?:nccl|gloo|mpi|ucc|c10d):+[\w:]{1,60}|(?:autograd|aten|cub|torch)::[\w:]{1,100}"
    r"|autograd::engine::evaluate_function: [\w:]{1,100}"
    r"|Torch-Compiled Region(?:: \d{1,4}(?:/\d{1,4})?)?|CompiledFunction(?:Backward)?|Pregraph bytecode"
    r"|TorchDynamo Cache Lookup|AOTDispatcher Runtime Wrapper (?:Prologue|Epilogue)"
    r"|\w{1,60}(?:\.\w{1,60})? \(dynamo_timed\)"
    r"|CUDAGraphNode\.\w{1,40}(?:: is_backward=(?:True|False), compile_id=\d{1,4}/\d{1,4})?|\[memory\]"
    r"|execute_(?:new_|context_|model|\d{1,6}_context_)[\w()]{0,120}"
    r"|(?:step|prefill|decode)\[(?:(?:EXTEND|DECODE|MIXED|PREFILL|IDLE)\b|\w{1,12}=\d{1,9})?"
    r"(?: \w{1,12}=\d{1,9}){0,6}\]"
    r"|\[Executor\] _forward_step \d{1,9}|\[pl\]\[profile\]run_training_batch|\[pytorch\|profiler\|[\w|]{1,60}\]",
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
    r"|\[NSys\]|\[NSys Comms\]|CUPTI worker thread|TORCHRUN|torchrun|ray|vllm|nsys|ncu|julia(?:-[\d.]{1,8})?"
    r"|/device:GPU:\d{1,3}(?: [\w()]{0,12})?|/host:CPU|/host:python-tracer|Stream #\d{1,4}(?:\([A-Za-z,]{0,20}\))?"
    r"|Ascend(?: ?Hardware)?|CANN|HCCL|AI ?Core|NPU|TPU",
    re.ASCII,
)
"""Threads and processes that torch, CUDA and the profilers name themselves."""

_PROGRAM = re.compile(r"python[0-9.]{0,6}|julia(-[0-9.]{1,8})?|torchrun|ray|vllm|nsys|ncu", re.ASCII)

_DOMAINS = """
    nccl rccl cccl cub thrust cudnn cublas cublaslt cusparse cusolver cufft curand cutensor nvshmem nvtx default torch
    pytorch torchnvtx transformerengine transformer_engine dali libcudf cudf cuml raft rmm ucx mpi openmp cuda
"""
KNOWN_DOMAINS = frozenset(_DOMAINS.split())
"""NVTX domains of public libraries, in lower case."""


class NameScrubber:
    """Replaces the names of one file; equal names stay equal, and different ones different."""

    def __init__(self, keep_names: bool = False) -> None:
        self.keep_names = keep_names
        self.pseudonyms = Pseudonyms()

    def kernel(self, text: str) -> str:
        """A kernel's name: demangled, mangled, or of Triton."""
        text = text[:MAX_NAME_CHARS]
        if KNOWN_LABELS.fullmatch(text):
            return text
        if text.startswith("_Z"):
            new = renamed(text, self._identifier)
            if new is not None and all(map(is_known, _LITERAL.findall(new))):
                return new
        elif _is_kernel(text):
            return self.pieces(_TEMPLATE_HASH.sub("00000000", text))
        return self._whole("name", text, KERNEL_TELLS)

    def op(self, text: str) -> str:
        """An op's name; the record functions of torch among them."""
        if KNOWN_LABELS.fullmatch(text):
            return text
        if KNOWN_RANGES.fullmatch(text):
            return self.pieces(text)
        if found := _COMPILED.fullmatch(text):
            return f"{found[1]}{self.pieces(found[2])}{found[3]}"
        return (
            self.pieces(text)
            if _LETTER.search(text) and _OP.fullmatch(text)
            else self._whole("name", text, RANGE_TELLS)
        )

    def call(self, text: str) -> str:
        """A call of CUDA or of the operating system, an activity of the profiler, a fixed label."""
        if found := _LOADED.fullmatch(text):
            return f"{found[1]}({self._whole('name', found[2], None)})"
        if KNOWN_LABELS.fullmatch(text):
            return text
        is_name = _IDENTIFIER.fullmatch(text) or KNOWN_RANGES.fullmatch(text)
        return self.pieces(text) if is_name else self._whole("name", text, RANGE_TELLS)

    def range(self, text: str) -> str:
        """A name that a person gave to a part of the program: NVTX, record_function."""
        if any(form.fullmatch(text) for form in (KNOWN_LABELS, KNOWN_RANGES, _COMPILED)):
            return self.op(text)
        return self._chosen("range", text, RANGE_TELLS)

    def domain(self, text: str) -> str:
        """An NVTX domain or category: those of libraries stay."""
        return text if text.lower() in KNOWN_DOMAINS else self._chosen("domain", text, RANGE_TELLS)

    def thread(self, text: str) -> str:
        """A thread's name."""
        return text if KNOWN_THREADS.fullmatch(text) else self._chosen("thread", text)

    def process(self, text: str) -> str:
        """A process's name."""
        program = program_of(text)
        return program if KNOWN_THREADS.fullmatch(program) else self._chosen("process", text)

    def pieces(self, text: str) -> str:
        """The text with a pseudonym for every piece that is not known."""
        done, parts = 0, []
        for found in _CHAIN.finditer(text):
            if _is_plain_chain(found[1]):  # sizes and versions stay, an address or a card does not
                continue
            start = found.start()
            while start > done and text[start - 1].isalnum():
                start -= 1
            parts += [PIECE.sub(self._piece, text[done:start]), self._name(text[start : found.end()])]
            done = found.end()
        return "".join(parts) + PIECE.sub(self._piece, text[done:])

    def _piece(self, found: re.Match[str]) -> str:
        return found[0] if is_known(found[0]) else self._name(found[0])

    def word(self, text: str) -> str:
        """One pseudonym of a text of any kind."""
        return f"text{self.pseudonyms.code('text', text)}"

    def _name(self, piece: str) -> str:
        return f"{'Name' if piece[:1].isupper() else 'name'}{self.pseudonyms.code('name', piece)}"

    def _identifier(self, text: str) -> str:
        return self.pieces(_TEMPLATE_HASH.sub("00000000", text))

    def _chosen(self, group: str, text: str, tells: re.Pattern[str] | None = None) -> str:
        """A name that a person chose. Where analyses look for words (tells), those of every program stay."""
        if self.keep_names and text and text.isprintable():
            return self.kept(text)
        return text if tells and is_harmless(text) else self._whole(group, text, tells)

    def kept(self, text: str) -> str:
        """A name that is to stay: its words that are names in a program. Another word (a path, an address) does not."""
        words = redacted(text).split(" ")
        few = _only_count(_DIGITS.findall(text))
        return " ".join(
            word if _is_a_name(word) and (few or not _DIGITS.search(word)) else self._name(word) for word in words
        )

    def kept_file(self, path: str) -> str:
        """The same of a file's path: only the file's own name is one."""
        *folders, last = re.split(r"[/\\]", path)
        is_file = "." in last or folders in ([], ["…"])  # the latter has been here before
        shown = self.kept(last) if is_file else self._name(last)
        return f"…/{shown}" if folders else shown

    def _whole(self, group: str, text: str, tells: re.Pattern[str] | None) -> str:
        """One pseudonym, with the words that an analysis looks for and the numbers that tell equal names apart."""
        numbers = _counters(text)
        skeleton = _DIGITS.sub("#", text) if numbers else text
        told = dict.fromkeys(found.lower() for found in tells.findall(text[:MAX_NAME_CHARS])) if tells else {}
        head = f"{group}{self.pseudonyms.code(group, skeleton)}"
        return " ".join(["_".join([head, *told]), *numbers])


def _is_a_name(word: str) -> bool:
    """Whether a word is an identifier, or several with the marks of a program between them; numbers only count.

    With a mark of a path, a host or a pair, all its parts must be known.
    """
    if _GROUPS.search(word) or any(_ODD.search(piece) and not is_known(piece) for piece in PIECE.findall(word)):
        return False
    return not _MARKED.search(word) or known_words(word)


def _is_kernel(text: str) -> bool:
    """Whether a text has the form of a kernel's name: an identifier, or a declaration of C++ with its brackets."""
    if not _LETTER.search(text) or _NO_KERNEL.search(text) or _SENTENCE.search(text):
        return False
    return bool(_QUALIFIED.fullmatch(text)) or (bool(_KERNEL.fullmatch(text)) and ("(" in text or "<" in text))


def _is_plain_chain(text: str) -> bool:
    digits, numbers = sum(map(str.isdigit, text)), _DIGITS.findall(text)
    sized = set(text) <= _SIZE_CHARS and _are_sizes(numbers)
    return digits <= (MAX_SIZE_DIGITS if sized else MAX_DIGITS) and (sized or len(numbers) < ADDRESS_NUMBERS)


def _are_sizes(numbers: list[str]) -> bool:
    """Whether numbers may be sizes: without leading zeros, and no four that only an address of a machine has."""
    if any(number.startswith("0") and number != "0" for number in numbers):
        return False
    runs = (numbers[at : at + ADDRESS_NUMBERS] for at in range(len(numbers) - ADDRESS_NUMBERS + 1))
    addresses = (run for run in runs if all(int(number) < 1 << 8 for number in run))
    return all(int(number) in TILES for run in addresses for number in run)


def _counters(text: str) -> list[str]:
    """The numbers of a name that only count (``step 17``, ``layer.3``); none if there may be more to them."""
    numbers = _DIGITS.findall(text)
    return numbers if _only_count(numbers) and not _NO_COUNTER.search(text) else []


def _only_count(numbers: list[str]) -> bool:
    return len(numbers) <= MAX_COUNTERS and sum(map(len, numbers)) <= MAX_DIGITS


def program_of(text: str) -> str:
    """The file name of a program that everybody has, of the path to it; else the text itself."""
    program = re.split(r"[/\\]", text)[-1]
    return program if _PROGRAM.fullmatch(program) else text


def is_harmless(text: str) -> bool:
    """Whether a name says nothing but ``forward``, ``layer 3`` or ``__init__``. ``main 10.0.0.1`` says an address."""
    numbers = _DIGITS.findall(text)
    if sum(map(len, numbers)) > MAX_DIGITS or not _HARMLESS.fullmatch(text):
        return False
    if not all(_is_plain_chain(found[1]) for found in _CHAIN.finditer(text)):
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
