"""TD3 on a point mass that has to be steered to a goal; replay buffer of numpy arrays, one environment."""
import copy, sys, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HIDDEN, BATCH, START = (256, 256, 1000) if DEVICE == "cuda" else (16, 16, 50)
OBS, ACT = 12, 4


class PointMass:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def reset(self):
        self.pos, self.vel, self.goal = self.rng.uniform(-1, 1, ACT), np.zeros(ACT), self.rng.uniform(-1, 1, ACT)
        self.t = 0
        return self.obs()

    def obs(self):
        return np.concatenate([self.pos, self.vel, self.goal]).astype(np.float32)

    def step(self, action):
        self.vel = 0.9 * self.vel + 0.1 * action
        self.pos = np.clip(self.pos + 0.1 * self.vel, -2, 2)
        self.t += 1
        return self.obs(), -np.linalg.norm(self.pos - self.goal), self.t >= 200


class Buffer:
    def __init__(self, size=100_000):
        self.s, self.s2 = np.zeros((size, OBS), np.float32), np.zeros((size, OBS), np.float32)
        self.a, self.r = np.zeros((size, ACT), np.float32), np.zeros((size, 1), np.float32)
        self.d, self.n, self.size = np.zeros((size, 1), np.float32), 0, size

    def add(self, s, a, r, s2, d):
        i = self.n % self.size
        self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i] = s, a, r, s2, d
        self.n += 1

    def sample(self):
        i = np.random.randint(0, min(self.n, self.size), BATCH)
        return [torch.from_numpy(x[i]).to(DEVICE) for x in (self.s, self.a, self.r, self.s2, self.d)]


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, o))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)

    def forward(self, s, a):
        x = torch.cat([s, a], dim=1)
        return self.q1(x), self.q2(x)


def soft_update(target, source, tau=0.005):
    for t, s in zip(target.parameters(), source.parameters()):
        t.data.copy_(tau * s.data + (1 - tau) * t.data)


def main(steps):
    torch.manual_seed(0)
    np.random.seed(0)
    env, buffer = PointMass(), Buffer()
    actor, critic = nn.Sequential(*mlp(OBS, ACT), nn.Tanh()).to(DEVICE), Critic().to(DEVICE)
    actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=3e-4)
    obs, ret, start = env.reset(), 0.0, time.time()
    for step in range(steps):
        if step < START:
            action = np.random.uniform(-1, 1, ACT)
        else:
            with torch.no_grad():
                action = actor(torch.from_numpy(obs).to(DEVICE)).cpu().numpy()
            action = np.clip(action + 0.1 * np.random.randn(ACT), -1, 1)
        obs2, reward, done = env.step(action)
        buffer.add(obs, action, reward, obs2, float(done))
        obs, ret = obs2, ret + reward
        if done:
            obs, ret = env.reset(), 0.0
        if step < START:
            continue
        s, a, r, s2, d = buffer.sample()
        with torch.no_grad():
            noise = (torch.randn_like(a) * 0.2).clamp(-0.5, 0.5)
            a2 = (actor_target(s2) + noise).clamp(-1, 1)
            q1, q2 = critic_target(s2, a2)
            target = r + 0.99 * (1 - d) * torch.min(q1, q2)
        q1, q2 = critic(s, a)
        critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
        if step % 2 == 0:
            actor_loss = -critic(s, actor(s))[0].mean()
            actor_opt.zero_grad()
            actor_loss.backward()
            actor_opt.step()
            soft_update(actor_target, actor)
            soft_update(critic_target, critic)
        if step % 500 == 0:
            print(f"step {step} critic {critic_loss.item():.4f} return {ret:.1f} {(time.time() - start):.1f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
