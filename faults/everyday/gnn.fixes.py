EXPERT = {"cause": "kernel", "also": ["healthy"], "best_fix": "sparse_mm",
          "why": "The GPU is busy all the time gathering and atomically adding millions of 1 kB messages; the host is far ahead, so "
                 "only better kernels (a CSR sparse product, fewer bytes) help."}
CONV = """        messages = x[src]
        total = torch.zeros_like(x).index_add_(0, dst, messages)
        return"""
DEGREE = "    train_idx, test_idx ="
sparse_mm = [(CONV, "        total = SpMM.apply(x, src, dst)\n        return"),
    ("class SAGEConv(nn.Module):", """class SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, adj, adj_t):
        ctx.adj, ctx.adj_t = adj, adj_t
        return adj @ x

    @staticmethod
    def backward(ctx, grad):
        return ctx.adj_t @ grad.contiguous(), None, None


def csr(rows, cols):
    order = torch.argsort(rows * NODES + cols)
    crow = torch.zeros(NODES + 1, dtype=torch.long, device=DEVICE)
    crow[1:] = torch.bincount(rows, minlength=NODES).cumsum(0)
    return torch.sparse_csr_tensor(crow.int(), cols[order].int(), torch.ones(len(rows), device=DEVICE), (NODES, NODES))


class SAGEConv(nn.Module):"""),
    (DEGREE, "    edges = len(src)\n    src, dst = csr(dst, src), csr(src, dst)\n" + DEGREE), ("{len(src)} edges", "{edges} edges")]
sort_edges = [(DEGREE, "    order = torch.argsort(dst * NODES + src)\n    src, dst = src[order], dst[order]\n" + DEGREE)]
project_first = [(CONV + " self.own(x) + self.neighbours(total / degree)", """        if self.own.out_features < self.own.in_features:
            h = self.neighbours(x)
            return self.own(x) + torch.zeros_like(h).index_add_(0, dst, h[src]) / degree
""" + CONV + " self.own(x) + self.neighbours(total / degree)")]
bf16 = [("        messages = x[src]\n        total = torch.zeros_like(x).index_add_(0, dst, messages)\n",
         "        half = x.to(torch.bfloat16)\n        total = torch.zeros_like(half).index_add_(0, dst, half[src]).float()\n")]
index_select = [("messages = x[src]", "messages = x.index_select(0, src)")]
remove_sync = [("        if epoch % 10 == 0:\n", "        if epoch == EPOCHS - 1:\n")]
FIXES = [("sparse_mm", sparse_mm), ("sort_edges", sort_edges), ("project_first", project_first), ("bf16", bf16),
         ("index_select", index_select), ("remove_sync", remove_sync),
         ("best", [(project_first[0][0], project_first[0][1].replace("torch.zeros_like(h).index_add_(0, dst, h[src])", "SpMM.apply(h, src, dst)"))]
          + sparse_mm)]
