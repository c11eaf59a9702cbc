EXPERT = {"cause": "dispatch", "also": [], "best_fix": "cuda_graph",
          "why": "192 time steps of two LSTM cells, forward and backward, are thousands of tiny kernels launched from Python; "
                 "a graph of the whole training step (or cuDNN's LSTM for the encoder) removes the launches."}
LOOP = """        for t in range(x.size(1)):
            h1, c1 = self.lstm1(x[:, t], (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
        y, outputs"""
ZEROS = """        h1, c1 = torch.zeros(n, HIDDEN).to(DEVICE), torch.zeros(n, HIDDEN).to(DEVICE)
        h2, c2 = torch.zeros(n, HIDDEN).to(DEVICE), torch.zeros(n, HIDDEN).to(DEVICE)
"""
# the cells' weights stay what they are; the encoder runs them through torch's fused LSTM
cudnn_lstm = [(ZEROS, ""), (LOOP, """        zero = x.new_zeros(1, n, HIDDEN)
        w = lambda c: [c.weight_ih, c.weight_hh, c.bias_ih, c.bias_hh]
        out, h1, c1 = torch._VF.lstm(x, (zero, zero), w(self.lstm1), True, 1, 0.0, self.training, False, True)
        out, h2, c2 = torch._VF.lstm(out, (zero, zero), w(self.lstm2), True, 1, 0.0, self.training, False, True)
        h1, c1, h2, c2 = h1[0], c1[0], h2[0], c2[0]
        y, outputs""")]
drop_copies = [(ZEROS, "        h1 = c1 = h2 = c2 = x.new_zeros(n, HIDDEN)\n")]
TRAIN = """            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
"""
graph_step = [("lr=1e-3)", "lr=1e-3, capturable=DEVICE == 'cuda')\n    train_step = None"),
    (TRAIN, "            train_step = train_step or capture(model, criterion, optimizer, x, y)\n            loss = train_step(x, y)\n"),
    ("def main():\n", """def capture(model, criterion, optimizer, x, y):
    sx, sy = x.clone(), y.clone()
    def work():
        optimizer.zero_grad()
        loss = criterion(model(sx), sy)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        out = work()
    def step(x, y):
        sx.copy_(x)
        sy.copy_(y)
        graph.replay()
        return out
    return step


def main():
""")]
remove_sync = [("losses.append(loss.item())", "losses.append(loss.detach().clone())"),
               ("np.mean(losses[-20:])", "torch.stack(losses[-20:]).mean().item()")]
fused_optimizer = [("lr=1e-3)", "lr=1e-3, fused=True)")]
prefetch = [("shuffle=True, drop_last=True)", "shuffle=True, drop_last=True, num_workers=4, pin_memory=True, persistent_workers=True)")]
FIXES = [("cuda_graph", drop_copies + graph_step), ("cudnn_lstm", cudnn_lstm), ("drop_copies", drop_copies),
         ("remove_sync", remove_sync), ("fused_optimizer", fused_optimizer),
         ("best", cudnn_lstm + graph_step + remove_sync + prefetch)]
