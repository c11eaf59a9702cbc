"""A convolutional VAE on small colour images that lie in memory."""
import sys, time
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, WIDTH, SIZE, IMAGES = (128, 64, 64, 6000) if DEVICE == "cuda" else (8, 8, 32, 200)
LATENT = 128


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        w, small = WIDTH, SIZE // 8
        down = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))
        up = lambda a, b: nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU())
        self.encoder = nn.Sequential(down(3, w), down(w, 2 * w), down(2 * w, 4 * w), nn.Flatten())
        self.mu, self.logvar = (nn.Linear(4 * w * small * small, LATENT) for _ in range(2))
        self.inp = nn.Linear(LATENT, 4 * w * small * small)
        self.decoder = nn.Sequential(nn.Unflatten(1, (4 * w, small, small)), up(4 * w, 2 * w), up(2 * w, w),
                                     nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(self.inp(z)), mu, logvar


def vae_loss(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum") / x.shape[0]
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / x.shape[0]
    return bce + kld, bce, kld


def main(epochs):
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(IMAGES, 3, SIZE, SIZE))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True)
    model = VAE().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        start, total, total_kld = time.time(), 0.0, 0.0
        for i, (x,) in enumerate(loader):
            x = x.to(DEVICE)
            recon, mu, logvar = model(x)
            loss, bce, kld = vae_loss(recon, x, mu, logvar)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            total_kld += kld.item()
        print(f"epoch {epoch} loss {total / (i + 1):.2f} kld {total_kld / (i + 1):.2f} {time.time() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
