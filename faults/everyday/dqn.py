"""DQN on a small "catch the ball" game drawn as 84x84 frames, four frames stacked, replay buffer in a deque."""
import os, random, time
from collections import deque
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(12, int((12 if SMALL else 160 if QUICK else 600) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, START, BUFFER, HIDDEN = (4, 8, 100, 16) if SMALL else (64, 500, 20_000, 512)
GAMMA, TARGET_EVERY, ACTIONS = 0.99, 100, 3


class Catch:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.frames = deque(maxlen=4)
        self.reset()

    def draw(self):
        frame = np.zeros((84, 84), dtype=np.uint8)
        y, x = int(self.ball[0]), int(self.ball[1])
        frame[max(y - 2, 0):y + 2, max(x - 2, 0):x + 2] = 255
        frame[80:84, self.paddle - 6:self.paddle + 6] = 180
        return frame

    def reset(self):
        self.ball, self.drift = [2.0, self.rng.uniform(8, 76)], self.rng.uniform(-1, 1)
        self.paddle = 42
        for _ in range(4):
            self.frames.append(self.draw())
        return np.stack(self.frames)

    def step(self, action):
        self.paddle = int(np.clip(self.paddle + (action - 1) * 3, 6, 78))
        self.ball = [self.ball[0] + 2.0, float(np.clip(self.ball[1] + self.drift, 2, 81))]
        self.frames.append(self.draw())
        done = self.ball[0] >= 80
        reward = (1.0 if abs(self.ball[1] - self.paddle) < 8 else -1.0) if done else 0.0
        return np.stack(self.frames), reward, done


class ReplayBuffer:
    def __init__(self, size):
        self.memory = deque(maxlen=size)

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, n):
        states, actions, rewards, next_states, dones = zip(*random.sample(self.memory, n))
        states = torch.from_numpy(np.array(states) / 255.0).float().to(DEVICE)
        next_states = torch.from_numpy(np.array(next_states) / 255.0).float().to(DEVICE)
        actions = torch.tensor(actions).to(DEVICE)
        rewards = torch.tensor(rewards, dtype=torch.float32).to(DEVICE)
        dones = torch.tensor(dones, dtype=torch.float32).to(DEVICE)
        return states, actions, rewards, next_states, dones


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
                                 nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, HIDDEN), nn.ReLU(),
                                 nn.Linear(HIDDEN, ACTIONS))

    def forward(self, x):
        return self.net(x)


def act(q_net, state, epsilon):
    if random.random() < epsilon:
        return random.randrange(ACTIONS)
    with torch.no_grad():
        x = torch.from_numpy(state / 255.0).float().unsqueeze(0).to(DEVICE)
        return q_net(x).argmax(dim=1).item()


def learn(q_net, target_net, optimizer, batch):
    states, actions, rewards, next_states, dones = batch
    q = q_net(states).gather(1, actions[:, None]).squeeze(1)
    with torch.no_grad():
        target = rewards + GAMMA * (1 - dones) * target_net(next_states).max(dim=1).values
    loss = F.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    random.seed(0)
    env, buffer = Catch(), ReplayBuffer(BUFFER)
    q_net, target_net = QNet().to(DEVICE), QNet().to(DEVICE)
    target_net.load_state_dict(q_net.state_dict())
    optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-4)
    state, total, episodes, losses = env.reset(), 0.0, deque(maxlen=50), deque(maxlen=100)
    for step in range(-START, STEPS):
        if step == STEPS // 3:
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        epsilon = max(0.05, 1.0 - 2 * max(step, 0) / STEPS) if step >= 0 else 1.0
        action = act(q_net, state, epsilon)
        next_state, reward, done = env.step(action)
        buffer.push(state, action, reward, next_state, done)
        state, total = next_state, total + reward
        if done:
            episodes.append(total)
            state, total = env.reset(), 0.0
        if step < 0:
            continue
        losses.append(learn(q_net, target_net, optimizer, buffer.sample(BATCH)))
        if step % TARGET_EVERY == 0:
            target_net.load_state_dict(q_net.state_dict())
            print(f"step {step} eps {epsilon:.2f} loss {sum(losses) / len(losses):.5f} return {np.mean(episodes):.2f}", flush=True)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
