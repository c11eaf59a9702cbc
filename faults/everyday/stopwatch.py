"""Times every program here as it is, with each of its fixes, and as it is once more; one forked child for each.

python stopwatch.py [NAMES...] [--out DIR] [--limit SECONDS] [--steps-scale X] [--full] [--only FIX,FIX]
Children run with QUICK=1 unless --full. Without a GPU (SMALL=1) CUDA-only calls are replaced by stand-ins.
"""
import argparse, json, os, re, runpy, signal, statistics, sys, time, traceback

HERE = os.path.dirname(os.path.abspath(__file__))
CHILD_LIMIT = 40.0


def programs():
    return sorted(f[:-len(".fixes.py")] for f in os.listdir(HERE) if f.endswith(".fixes.py"))


def load(name):
    space = runpy.run_path(os.path.join(HERE, name + ".fixes.py"))
    with open(os.path.join(HERE, name + ".py")) as f:
        return f.read(), space["FIXES"], space["EXPERT"]


def change(source, replacements):
    for old, new in replacements:
        if source.count(old) < 1:
            raise ValueError(f"text not found: {old[:80]!r}")
        if source.count(old) > 1:
            raise ValueError(f"text found {source.count(old)} times: {old[:80]!r}")
        source = source.replace(old, new)
    return source


def stand_ins(torch):
    """So that the text of GPU-only fixes at least runs on a machine without one."""
    import contextlib
    class Graph:
        def replay(self): pass
    class Stream:
        def wait_stream(self, other): pass
    torch.cuda.CUDAGraph, torch.cuda.Stream = Graph, Stream
    torch.cuda.current_stream = lambda *a: Stream()
    torch.cuda.stream = torch.cuda.graph = lambda *a, **k: contextlib.nullcontext()
    torch.Tensor.pin_memory = lambda self, *a: self
    torch.nn.Module.compile = lambda self, *a, **k: None
    torch.compile = lambda f=None, *a, **k: f if f is not None else (lambda g: g)


def safe_here(statement, torch):
    """Do a slow import once in the parent, if a child forked after it can still use the GPU (tried in a child first)."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            exec(statement, {})
            grandchild = os.fork()
            if grandchild == 0:
                try:
                    if torch.cuda.is_available():
                        torch.zeros(1, device="cuda").sum().item()
                    code = 0
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitpid(pid, 0)[1] != 0:
        return False
    exec(statement, {})
    return True


def child(path, log, torch):
    os.setpgid(0, 0)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    if getattr(torch.cuda, "_is_in_bad_fork", lambda: False)():
        print("STOPWATCH exec: the parent had touched CUDA", flush=True)
        os.execv(sys.executable, [sys.executable, path])
    code = 0
    try:
        if not torch.cuda.is_available():
            stand_ins(torch)
        sys.argv, sys.path[0] = [path], os.path.dirname(path)
        runpy.run_path(path, run_name="__main__")
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(path, log, torch):
    """ms_per_step (or None), error text, seconds, how it was started."""
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            child(path, log, torch)
        finally:
            os._exit(70)
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass
    status, timed_out = None, False
    while True:
        done, st = os.waitpid(pid, os.WNOHANG)
        if done:
            status = st
            break
        if time.monotonic() - begin > CHILD_LIMIT:
            timed_out = True
            break
        time.sleep(0.02)
    try:
        os.killpg(pid, signal.SIGKILL)  # loader or compile workers left behind, or the child itself
    except OSError:
        pass
    if timed_out:
        os.waitpid(pid, 0)
    seconds = time.monotonic() - begin
    try:
        text = open(log, errors="replace").read()
    except OSError:
        text = ""
    found = re.findall(r"^ms_per_step=([0-9.eE+-]+)\s*$", text, re.M)
    ms, error = (float(found[-1]) if found else None), None
    if timed_out:
        error = f"stopped after {CHILD_LIMIT:.0f} s"
    elif status != 0:
        error = f"exit status {os.waitstatus_to_exitcode(status)}"
    elif ms is None:
        error = "no ms_per_step line"
    if error:
        error += ": " + text[-1500:]
        ms = None
    return ms, error, seconds, "exec" if text.startswith("STOPWATCH exec") else "fork"


def save(out, results):
    for name in {r["program"] for r in results}:
        rows = [r for r in results if r["program"] == name]
        base = [r["ms"] for r in rows if r["fix"].startswith("baseline") and r["ms"]]
        for r in rows:
            r["baseline_ms"] = statistics.fmean(base) if base else None
            r["ratio"] = r["ms"] / r["baseline_ms"] if base and r["ms"] else None
    tmp = os.path.join(out, "results.json.tmp")
    with open(tmp, "w") as f:
        json.dump(results, f, indent=1)
    os.replace(tmp, os.path.join(out, "results.json"))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("names", nargs="*")
    ap.add_argument("--out", default="stopwatch_out")
    ap.add_argument("--limit", type=float, default=500.0, help="start no child after this many seconds")
    ap.add_argument("--steps-scale", default=os.environ.get("STEPS_SCALE", "1"))
    ap.add_argument("--full", action="store_true", help="full-length runs rather than QUICK=1")
    ap.add_argument("--only", help="fixes to run, by name, joined by commas (baselines always run)")
    ap.add_argument("--check", action="store_true", help="only check that every replacement applies")
    args = ap.parse_args()
    names = [os.path.basename(n).removesuffix(".py") for n in args.names] or programs()
    out = os.path.abspath(args.out)
    only = args.only.split(",") if args.only else None
    jobs = []
    for name in names:
        source, fixes, expert = load(name)
        todo = [("baseline", [])] + [(f, r) for f, r in fixes if not only or f in only] + [("baseline_again", [])]
        for fix, replacements in todo:
            new = change(source, replacements)
            compile(new, f"{name}__{fix}.py", "exec")
            jobs.append((name, fix, new))
    if args.check:
        print(f"{len(jobs)} sources of {len(names)} programs apply and compile")
        return
    os.makedirs(os.path.join(out, "src"), exist_ok=True)
    os.makedirs(os.path.join(out, "logs"), exist_ok=True)
    os.environ["STEPS_SCALE"] = str(args.steps_scale)
    if not args.full:
        os.environ["QUICK"] = "1"
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # is_available() in an import must not start CUDA here
    begin = time.monotonic()
    import numpy, torch, torch.utils.data  # noqa: F401  nothing here touches CUDA
    for what in ["import torch._dynamo"] + ["from transformers import GPT2Config, GPT2LMHeadModel"] * ("lora_finetune" in names):
        print(f"{what}: {'in the parent' if safe_here(what, torch) else 'left to the children'}", flush=True)
    results = []
    for name, fix, source in jobs:
        row = {"program": name, "fix": fix, "ms": None, "ratio": None, "baseline_ms": None, "error": None, "seconds": 0.0}
        results.append(row)
        if time.monotonic() - begin > args.limit:
            row["error"] = "not started: time limit"
        else:
            path = os.path.join(out, "src", f"{name}__{fix}.py")
            with open(path, "w") as f:
                f.write(source)
            row["ms"], row["error"], row["seconds"], row["start"] = run(path, os.path.join(out, "logs", f"{name}__{fix}.txt"), torch)
        save(out, results)
        ms = "-" if row["ms"] is None else f"{row['ms']:.3f}"
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        print(f"{time.monotonic() - begin:6.1f}s {name:14s} {fix:20s} ms {ms:>10s} ratio {ratio:>6s} ({row['seconds']:.1f} s) "
              f"{(row['error'] or '').splitlines()[0][:100] if row['error'] else ''}", flush=True)


if __name__ == "__main__":
    main()
