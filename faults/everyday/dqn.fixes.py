EXPERT = {"cause": "input", "also": ["transfer"], "best_fix": "preallocate",
          "why": "Each learning step stacks 128 observations and turns them into float64 then float32 on the CPU before copying 14 MB; "
                 "that host work is longer than the GPU's, and a preallocated uint8 replay on the GPU removes it."}
SAMPLE = """        states = torch.from_numpy(np.array(states) / 255.0).float().to(DEVICE)
        next_states = torch.from_numpy(np.array(next_states) / 255.0).float().to(DEVICE)
"""
reduce_before_copy = [(SAMPLE, """        states = torch.from_numpy(np.array(states)).to(DEVICE).float() / 255.0
        next_states = torch.from_numpy(np.array(next_states)).to(DEVICE).float() / 255.0
""")]
pin_memory = [(SAMPLE, SAMPLE.replace(".float().to(DEVICE)", ".float().pin_memory().to(DEVICE, non_blocking=True)"))]
preallocate = [("""        self.memory = deque(maxlen=size)

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, n):
        states, actions, rewards, next_states, dones = zip(*random.sample(self.memory, n))
""" + SAMPLE + """        actions = torch.tensor(actions).to(DEVICE)
        rewards = torch.tensor(rewards, dtype=torch.float32).to(DEVICE)
        dones = torch.tensor(dones, dtype=torch.float32).to(DEVICE)
        return states, actions, rewards, next_states, dones
""", """        self.states = torch.zeros(size, 2, 4, 84, 84, dtype=torch.uint8, device=DEVICE)
        self.rest = torch.zeros(size, 3, device=DEVICE)
        self.size, self.count = size, 0

    def push(self, state, action, reward, next_state, done):
        i = self.count % self.size
        self.states[i].copy_(torch.from_numpy(np.stack([state, next_state])))
        self.rest[i].copy_(torch.tensor([action, reward, float(done)]))
        self.count += 1

    def sample(self, n):
        idx = torch.randint(0, min(self.count, self.size), (n,), device=DEVICE)
        both, rest = self.states[idx].float() / 255.0, self.rest[idx]
        return both[:, 0], rest[:, 0].long(), rest[:, 1], both[:, 1], rest[:, 2]
""")]
remove_sync = [("    return loss.item()\n", "    return loss.detach()\n"), ("{sum(losses) / len(losses):.5f}", "{(sum(losses) / len(losses)).item():.5f}")]
fused_optimizer = [("lr=1e-4)", "lr=1e-4, fused=True)")]
cuda_graph = [("losses.append(learn(q_net, target_net, optimizer, buffer.sample(BATCH)))",
               "if step == 0:\n            graphed = capture(q_net, target_net, optimizer, buffer.sample(BATCH))\n"
               "        losses.append(graphed(buffer.sample(BATCH)).item())"),
    ("    return loss.item()\n", "    return loss.detach()\n"), ("lr=1e-4)", "lr=1e-4, capturable=DEVICE == 'cuda')"),
    ("def main():\n", """def capture(q_net, target_net, optimizer, batch):
    static = [t.clone() for t in batch]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            learn(q_net, target_net, optimizer, static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        out = learn(q_net, target_net, optimizer, static)
    def run(batch):
        for s, t in zip(static, batch):
            s.copy_(t)
        graph.replay()
        return out
    return run


def main():
""")]
FIXES = [("preallocate", preallocate), ("reduce_before_copy", reduce_before_copy), ("pin_memory", pin_memory),
         ("remove_sync", remove_sync), ("fused_optimizer", fused_optimizer), ("cuda_graph", cuda_graph),
         ("best", preallocate + cuda_graph + [("(buffer.sample(BATCH)).item())", "(buffer.sample(BATCH)).clone())"), remove_sync[1]])]
