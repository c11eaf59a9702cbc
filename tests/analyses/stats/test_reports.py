"""Every report over a trace small enough to be worked out on paper."""

from __future__ import annotations

import polars as pl
import pytest
from stats_traces import call, kernel, make_trace, migrating_trace, paper_trace, span

from warpline.analyses.stats import REPORTS, find_report, report
from warpline.errors import CannotAnswer, UsageError
from warpline.reports.frame_text import to_csv

NINE = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)"

ON_PAPER = {
    # Launches took 10, 30 and 7 ns: 47 of 62.
    "cuda_api_sum": f"""\
{NINE.replace("Instances", "Num Calls")},Name
75.8,47,3,15.7,10.0,7,30,12.5,cudaLaunchKernel
9.7,6,1,6.0,6.0,6,6,0.0,cudaMemsetAsync
8.1,5,1,5.0,5.0,5,5,0.0,cudaMemcpyAsync
6.5,4,1,4.0,4.0,4,4,0.0,cudaGraphLaunch_v10000
""",
    "cuda_api_trace": """\
Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name
100,10,cudaLaunchKernel,0,1,7,70,20,main
200,30,cudaLaunchKernel,0,2,7,70,20,main
300,5,cudaMemcpyAsync,0,3,7,70,20,main
400,4,cudaGraphLaunch_v10000,0,4,7,70,20,main
500,7,cudaLaunchKernel,0,5,7,71,20,worker
600,6,cudaMemsetAsync,0,6,7,70,20,main
""",
    # The deviation of 100 and 30 is 70 over the root of two.
    "cuda_gpu_kern_sum": f"""\
{NINE},Name
96.3,130,2,65.0,65.0,30,100,49.5,alpha
3.7,5,1,5.0,5.0,5,5,0.0,beta
""",
    "cuda_gpu_kern_gb_sum": f"""\
{NINE},GridXYZ,BlockXYZ,Name
74.1,100,1,100.0,100.0,100,100,0.0,   1    2    3,  32    1    1,alpha
22.2,30,1,30.0,30.0,30,30,0.0,12345    1    1,  32    1    1,alpha
3.7,5,1,5.0,5.0,5,5,0.0,   1    1    1,  32    1    1,beta
""",
    # Equal totals: by name. A graph recorded as one bar is neither a kernel nor a memory operation.
    "cuda_gpu_mem_time_sum": f"""\
{NINE.replace("Instances", "Count")},Operation
50.0,10,1,10.0,10.0,10,10,0.0,[CUDA memcpy Host-to-Device]
50.0,10,1,10.0,10.0,10,10,0.0,[CUDA memset]
""",
    "cuda_gpu_mem_size_sum": """\
Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation
4.000,1,4.000,4.000,4.000,4.000,0.000,[CUDA memcpy Host-to-Device]
0.001,1,0.001,0.001,0.001,0.001,0.000,[CUDA memset]
""",
    "cuda_gpu_sum": f"""\
{NINE},Category,Operation
83.9,130,2,65.0,65.0,30,100,49.5,CUDA_KERNEL,alpha
6.5,10,1,10.0,10.0,10,10,0.0,MEMORY_OPER,[CUDA memcpy Host-to-Device]
6.5,10,1,10.0,10.0,10,10,0.0,MEMORY_OPER,[CUDA memset]
3.2,5,1,5.0,5.0,5,5,0.0,CUDA_KERNEL,beta
""",
    "cuda_api_gpu_sum": f"""\
{NINE},Category,Operation
59.9,130,2,65.0,65.0,30,100,49.5,CUDA_KERNEL,alpha
21.7,47,3,15.7,10.0,7,30,12.5,CUDA_API,cudaLaunchKernel
4.6,10,1,10.0,10.0,10,10,0.0,MEMORY_OPER,[CUDA memcpy Host-to-Device]
4.6,10,1,10.0,10.0,10,10,0.0,MEMORY_OPER,[CUDA memset]
2.8,6,1,6.0,6.0,6,6,0.0,CUDA_API,cudaMemsetAsync
2.3,5,1,5.0,5.0,5,5,0.0,CUDA_KERNEL,beta
2.3,5,1,5.0,5.0,5,5,0.0,CUDA_API,cudaMemcpyAsync
1.8,4,1,4.0,4.0,4,4,0.0,CUDA_API,cudaGraphLaunch_v10000
""",
    # Four megabytes in 10 ns are 400 TB/s; what a set was set in is listed as its source.
    "cuda_gpu_trace": """\
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),\
Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
150,100,1,1,2,3,32,1,1,40,0.000,0.002,,,,,NVIDIA H200 (0),1,,7,alpha
220,5,2,1,1,1,32,1,1,40,0.000,0.002,,,,,NVIDIA H200 (0),1,,7,beta
310,10,3,,,,,,,,,,4.000,400000000.000,Pinned,Device,NVIDIA H200 (0),1,,7,[CUDA memcpy Host-to-Device]
520,30,5,12345,1,1,32,1,1,40,0.000,0.002,,,,,NVIDIA H200 (0),1,,7,alpha
610,10,6,,,,,,,,,,0.001,60000.000,Device,,NVIDIA H200 (0),1,,7,[CUDA memset]
""",
    # Threads are apart. beta starts before its launch returns: no queue, and its life ends with the launch.
    "cuda_kern_exec_sum": """\
PID,TID,DevId,Count,QCount,TAvg (ns),TMed (ns),TMin (ns),TMax (ns),TStdDev (ns),AAvg (ns),AMed (ns),AMin (ns),\
AMax (ns),AStdDev (ns),QAvg (ns),QMed (ns),QMin (ns),QMax (ns),QStdDev (ns),KAvg (ns),KMed (ns),KMin (ns),\
KMax (ns),KStdDev (ns),API Name,Kernel Name
7,70,0,1,1,150.0,150.0,150,150,0.0,10.0,10.0,10,10,0.0,40.0,40.0,40,40,0.0,100.0,100.0,100,100,0.0,cudaLaunchKernel,alpha
7,71,0,1,1,50.0,50.0,50,50,0.0,7.0,7.0,7,7,0.0,13.0,13.0,13,13,0.0,30.0,30.0,30,30,0.0,cudaLaunchKernel,alpha
7,70,0,1,0,30.0,30.0,30,30,0.0,30.0,30.0,30,30,0.0,,,,,0.0,5.0,5.0,5,5,0.0,cudaLaunchKernel,beta
""",
    "cuda_kern_exec_trace": """\
API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns),Total Dur (ns),\
PID,TID,DevId,API Function,GridXYZ,BlockXYZ,Kernel Name
100,10,110,40,150,100,150,7,70,0,cudaLaunchKernel,   1    2    3,  32    1    1,alpha
200,30,,,220,5,30,7,70,0,cudaLaunchKernel,   1    1    1,  32    1    1,beta
500,7,507,13,520,30,50,7,71,0,cudaLaunchKernel,12345    1    1,  32    1    1,alpha
""",
    # 330, 210, 50 and 10 ns; a mark, an open range and a projection are no ranges with a duration.
    "nvtx_sum": f"""\
{NINE},Style,Range
55.0,330,1,330.0,330.0,330,330,0.0,PushPop,:outer
35.0,210,1,210.0,210.0,210,210,0.0,StartEnd,:loose
8.3,50,1,50.0,50.0,50,50,0.0,PushPop,lib:inner
1.7,10,1,10.0,10.0,10,10,0.0,PushPop,:idle
""",
    "nvtx_pushpop_sum": f"""\
{NINE},Range
84.6,330,1,330.0,330.0,330,330,0.0,:outer
12.8,50,1,50.0,50.0,50,50,0.0,lib:inner
2.6,10,1,10.0,10.0,10,10,0.0,:idle
""",
    "nvtx_startend_sum": f"""\
{NINE},Range
100.0,210,1,210.0,210.0,210,210,0.0,:loose
""",
    # The kernel of the worker was launched in none of its ranges.
    "nvtx_kern_sum": """\
NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Kernel Name
,,7,71,0,1,30,30.0,30.0,30,30,0.0,alpha
:outer,PushPop,7,70,1,1,100,100.0,100.0,100,100,0.0,alpha
:outer,PushPop,7,70,1,1,5,5.0,5.0,5,5,0.0,beta
lib:inner,PushPop,7,70,1,1,5,5.0,5.0,5,5,0.0,beta
""",
    # outer: from alpha's start at 150 to the copy's end at 320. loose overlaps outer without being in it.
    "nvtx_gpu_proj_sum": """\
Range,Style,Total Proj Time (ns),Total Range Time (ns),Range Instances,Proj Avg (ns),Proj Med (ns),Proj Min (ns),\
Proj Max (ns),Proj StdDev (ns),Total GPU Ops,Avg GPU Ops,Avg Range Lvl,Avg Num Child
:outer,PushPop,170,330,1,170.0,170.0,170,170,0.0,3,3.0,0.0,1.0
:loose,StartEnd,10,210,1,10.0,10.0,10,10,0.0,1,1.0,0.0,0.0
lib:inner,PushPop,5,50,1,5.0,5.0,5,5,0.0,1,1.0,1.0,0.0
""",
    # 10 and 20: deviation 10 over the root of two.
    "osrt_sum": f"""\
{NINE.replace("Instances", "Num Calls")},Name
70.0,70,1,70.0,70.0,70,70,0.0,poll
30.0,30,2,15.0,15.0,10,20,7.1,read
""",
    # 10^9 // 3 * 4096 and 10^9 // 1000 * 12288 bytes a second.
    "um_sum": """\
Virtual Address,HtoD Migration size (MB),DtoH Migration size (MB),CPU Page Faults, GPU Page Faults,\
Migration Throughput (MB/s)
0x1000,0.004,,,,1365333.332
0x2000,0.004,0.008,2,3,12288.000
""",
}


@pytest.mark.parametrize("name", REPORTS)
def test_report_is_what_paper_says(name: str) -> None:
    trace = migrating_trace() if name == "um_sum" else paper_trace()
    assert to_csv(report(trace, name)) == ON_PAPER[name]


@pytest.mark.parametrize("name", REPORTS)
def test_report_refuses_an_empty_trace(name: str) -> None:
    with pytest.raises(CannotAnswer, match="cannot answer, because the trace has no"):
        report(make_trace(), name)


def test_graph_nodes_are_kernels_but_one_launch() -> None:
    trace = make_trace(
        threads=[{"process": 7, "tid": 70}],
        api=[call("cudaGraphLaunch", 0, 10, 20, 1)],
        gpu=[kernel("node", 30, 40, 0, (1, 1, 1)), kernel("node", 50, 65, 0, (1, 1, 1))],
        ranges=[span("replay", "pushpop", 0, 5, 25)],
    )
    projected = report(trace, "nvtx_gpu_proj_sum").row(0, named=True)
    assert (projected["Total Proj Time (ns)"], projected["Total GPU Ops"]) == (35, 1)
    assert report(trace, "nvtx_kern_sum")["Kern Inst"].to_list() == [2]


def test_range_without_gpu_work_is_neither_projected_nor_a_child() -> None:
    trace = make_trace(
        threads=[{"process": 7, "tid": 70}],
        api=[call("cudaLaunchKernel", 0, 10, 20, 1)],
        gpu=[kernel("alone", 30, 40, 0, (1, 1, 1))],
        ranges=[span("busy", "pushpop", 0, 5, 50), span("idle", "pushpop", 0, 21, 22)],
    )
    projected = report(trace, "nvtx_gpu_proj_sum")
    assert projected.select("Range", "Avg Num Child").rows() == [(":busy", 0.0)]


def test_range_that_ends_on_another_thread_has_a_duration_but_no_work() -> None:
    trace = make_trace(
        threads=[{"process": 7, "tid": 70}, {"process": 7, "tid": 71}],
        api=[call("cudaLaunchKernel", 0, 10, 20, 1)],
        gpu=[kernel("alone", 30, 40, 0, (1, 1, 1))],
        ranges=[
            {**span("handed over", "startend", 0, 5, 50), "end_thread": 1},
            {**span("kept", "startend", 0, 6, 49), "end_thread": 0},
        ],
    )
    assert report(trace, "nvtx_sum")["Range"].to_list() == [":handed over", ":kept"]
    assert report(trace, "nvtx_gpu_proj_sum").select("Range", "Avg Range Lvl").rows() == [(":kept", 0.0)]
    assert report(trace, "nvtx_kern_sum")["NVTX Range"].to_list() == [":kept"]


def test_kernel_in_a_range_within_its_like_is_one_kernel_of_twice_the_time() -> None:
    trace = make_trace(
        threads=[{"process": 7, "tid": 70}],
        api=[call("cudaLaunchKernel", 0, 10, 20, 1)],
        gpu=[kernel("deep", 30, 40, 0, (1, 1, 1))],
        ranges=[span("again", "pushpop", 0, 5, 50), span("again", "pushpop", 0, 6, 49)],
    )
    row = report(trace, "nvtx_kern_sum").row(0, named=True)
    assert (row["NVTX Inst"], row["Kern Inst"], row["Total Time (ns)"], row["Avg (ns)"]) == (2, 1, 20, 10.0)


def test_start_end_ranges_are_none_in_nsys_but_unknown_to_torch() -> None:
    tables = {"threads": [{"process": 7, "tid": 70}], "ranges": [span("only", "pushpop", 0, 0, 9)]}
    assert report(make_trace("nsys", **tables), "nvtx_startend_sum").is_empty()
    with pytest.raises(CannotAnswer, match=r"torch\.profiler records none"):
        report(make_trace("kineto", **tables), "nvtx_startend_sum")


def test_kernel_whose_launch_is_missing_is_summed_but_not_followed() -> None:
    trace = make_trace(
        threads=[{"process": 7, "tid": 70}],
        api=[call("cudaLaunchKernel", 0, 10, 20, 1)],
        gpu=[kernel("known", 30, 40, 0, (1, 1, 1)), kernel("orphan", 50, 65, None, (1, 1, 1))],
    )
    assert report(trace, "cuda_gpu_kern_sum")["Name"].to_list() == ["orphan", "known"]
    assert report(trace, "cuda_kern_exec_trace")["Kernel Name"].to_list() == ["known"]


def test_equal_kernel_totals_are_listed_slowest_first_then_by_name() -> None:
    gpu = [kernel(name, start, start + 10, None, (1, 1, 1)) for start, name in enumerate(["a", "a", "c", "c"])]
    gpu += [kernel("b", 50, 70, None, (1, 1, 1))]
    assert report(make_trace(gpu=gpu), "cuda_gpu_kern_sum")["Name"].to_list() == ["b", "a", "c"]


def test_reports_answer_to_their_older_names() -> None:
    assert find_report("gpukernsum").name == "cuda_gpu_kern_sum"
    older = [name for entry in REPORTS.values() for name in entry.older_names]
    assert len(older) == len(set(older))
    assert not set(older) & set(REPORTS)


def test_unknown_report_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="cuda_gpu_kern_sum"):
        find_report("kernels")


def test_report_of_nothing_but_instants_has_no_share() -> None:
    trace = make_trace(gpu=[kernel("instant", 5, 5, None, (1, 1, 1))])
    frame = report(trace, "cuda_gpu_kern_sum")
    assert frame["Time (%)"].to_list() == [0.0]
    assert frame.schema["Time (%)"] == pl.Float64


@pytest.mark.parametrize("cut", ['{"cudaGraphLaunch": "_v100…', '["_v1"]', "7", '{"cudaGraphLa…": "_v1"}'])
def test_versions_of_functions_that_were_cut_are_left_out(cut: str) -> None:
    trace = make_trace(meta=[{"key": "api_suffixes", "value": cut}], api=[call("cudaGraphLaunch", 0, 100, 110, 1)])
    assert report(trace, "cuda_api_sum")["Name"].to_list() == ["cudaGraphLaunch"]
