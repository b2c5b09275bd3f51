"""The twelve models whose default pictures are measured: one forward and backward pass each, as people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mlp(torch: Any) -> None:
    """Two hidden layers, with cross entropy."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    x, target = torch.randn(32, 8), torch.arange(32) % 3
    loss = nn.functional.cross_entropy(model(x), target)
    loss.backward()


def cnn(torch: Any) -> None:
    """Two blocks of convolution, norm and pooling."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, channels: int, wider: int) -> None:
            super().__init__()
            self.conv = nn.Conv2d(channels, wider, 3, padding=1)
            self.norm = nn.BatchNorm2d(wider)

        def forward(self, x: Any) -> Any:
            return F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block1, self.block2 = Block(1, 8), Block(8, 16)
            self.head = nn.Linear(16 * 7 * 7, 10)

        def forward(self, x: Any) -> Any:
            x = self.block2(self.block1(x))
            return self.head(torch.flatten(x, 1))

    images, labels = torch.randn(4, 1, 28, 28), torch.arange(4)
    model = Net()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()


def resnet18(torch: Any) -> None:
    """ResNet-18, for small images."""
    nn, F = torch.nn, torch.nn.functional

    class BasicBlock(nn.Module):
        def __init__(self, channels: int, wider: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels, wider, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(wider)
            self.conv2 = nn.Conv2d(wider, wider, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(wider)
            self.downsample = None
            if stride != 1 or channels != wider:
                conv = nn.Conv2d(channels, wider, 1, stride=stride, bias=False)
                self.downsample = nn.Sequential(conv, nn.BatchNorm2d(wider))

        def forward(self, x: Any) -> Any:
            identity = x if self.downsample is None else self.downsample(x)
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            return F.relu(out + identity)

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False)
            self.bn1, self.relu, self.maxpool = nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)
            self.layer1 = nn.Sequential(BasicBlock(8, 8, 1), BasicBlock(8, 8, 1))
            self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16, 1))
            self.layer3 = nn.Sequential(BasicBlock(16, 32, 2), BasicBlock(32, 32, 1))
            self.layer4 = nn.Sequential(BasicBlock(32, 64, 2), BasicBlock(64, 64, 1))
            self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(torch.flatten(self.avgpool(x), 1))

    images, labels = torch.randn(2, 3, 64, 64), torch.arange(2)
    model = ResNet()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()


def unet(torch: Any) -> None:
    """A U-Net of three levels, whose skip connections are concatenated."""
    nn, F = torch.nn, torch.nn.functional

    class DoubleConv(nn.Module):
        def __init__(self, channels: int, wider: int) -> None:
            super().__init__()
            self.net = nn.Sequential(
                nn.Conv2d(channels, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU(),
                nn.Conv2d(wider, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU(),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return self.net(x)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2, self.bottom = DoubleConv(1, 4), DoubleConv(4, 8), DoubleConv(8, 16)
            self.up2, self.merge2 = nn.ConvTranspose2d(16, 8, 2, stride=2), DoubleConv(16, 8)
            self.up1, self.merge1 = nn.ConvTranspose2d(8, 4, 2, stride=2), DoubleConv(8, 4)
            self.out = nn.Conv2d(4, 1, 1)

        def forward(self, x: Any) -> Any:
            first = self.down1(x)
            second = self.down2(F.max_pool2d(first, 2))
            x = self.bottom(F.max_pool2d(second, 2))
            x = self.merge2(torch.cat([second, self.up2(x)], 1))
            x = self.merge1(torch.cat([first, self.up1(x)], 1))
            return self.out(x)

    image, mask = torch.randn(1, 1, 16, 16), torch.ones(1, 1, 16, 16)
    model = UNet()
    loss = F.binary_cross_entropy_with_logits(model(image), mask)
    loss.backward()


def lstm(torch: Any, steps: int) -> None:
    """An LSTM cell in a loop, with a head on its last state."""
    nn, F = torch.nn, torch.nn.functional

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.LSTMCell(8, 16), nn.Linear(16, 3)

        def forward(self, sequence: Any) -> Any:
            h = c = torch.zeros(sequence.shape[1], 16)
            for t in range(sequence.shape[0]):
                h, c = self.cell(sequence[t], (h, c))
            return self.head(h)

    sequence, target = torch.randn(steps, 4, 8), torch.arange(4) % 3
    model = Tagger()
    loss = F.cross_entropy(model(sequence), target)
    loss.backward()


def transformer(torch: Any, layers: int) -> None:
    """A GPT: pre-norm blocks with causal attention written out."""
    nn, F = torch.nn, torch.nn.functional
    width, heads = 32, 4

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-2, -1) / (width // heads) ** 0.5
            future = torch.triu(torch.ones(length, length), 1) > 0
            weights = F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
            return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))

    class MLP(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            return self.down(F.gelu(self.up(x)))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.attn = nn.LayerNorm(width), Attention()
            self.ln2, self.mlp = nn.LayerNorm(width), MLP()

        def forward(self, x: Any) -> Any:
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tok, self.pos = nn.Embedding(50, width), nn.Embedding(16, width)
            self.layers = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 50)

        def forward(self, ids: Any) -> Any:
            x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x))

    ids = torch.arange(20).reshape(2, 10)
    model = GPT()
    loss = F.cross_entropy(model(ids).reshape(-1, 50), (ids.reshape(-1) + 1) % 50)
    loss.backward()


def bert(torch: Any) -> None:
    """A tiny BERT that classifies: two layers of attention with a mask, a pooler, dropout."""
    nn, F = torch.nn, torch.nn.functional
    width, heads = 16, 2

    class Embeddings(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.word, self.position, self.segment = (
                nn.Embedding(50, width),
                nn.Embedding(20, width),
                nn.Embedding(2, width),
            )
            self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)

        def forward(self, ids: Any) -> Any:
            x = self.word(ids) + self.position(torch.arange(ids.shape[1])) + self.segment(torch.zeros_like(ids))
            return self.dropout(self.norm(x))

    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
            self.dropout = nn.Dropout(0.1)

        def split(self, x: Any) -> Any:
            return x.view(x.shape[0], x.shape[1], heads, width // heads).transpose(1, 2)

        def forward(self, x: Any, mask: Any) -> Any:
            q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
            scores = torch.matmul(q, k.transpose(-1, -2)) / (width // heads) ** 0.5 + mask
            context = torch.matmul(self.dropout(F.softmax(scores, dim=-1)), v)
            return context.transpose(1, 2).reshape(x.shape)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.output, self.norm1 = SelfAttention(), nn.Linear(width, width), nn.LayerNorm(width)
            self.up, self.down, self.norm2 = nn.Linear(width, 32), nn.Linear(32, width), nn.LayerNorm(width)
            self.dropout = nn.Dropout(0.1)

        def forward(self, x: Any, mask: Any) -> Any:
            x = self.norm1(x + self.dropout(self.output(self.attention(x, mask))))
            return self.norm2(x + self.dropout(self.down(F.gelu(self.up(x)))))

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embeddings = Embeddings()
            self.layer = nn.ModuleList([Layer() for _ in range(2)])
            self.pooler, self.dropout, self.classifier = nn.Linear(width, width), nn.Dropout(0.1), nn.Linear(width, 2)

        def forward(self, ids: Any, attention_mask: Any) -> Any:
            mask = (1.0 - attention_mask[:, None, None, :].float()) * -10000.0
            x = self.embeddings(ids)
            for layer in self.layer:
                x = layer(x, mask)
            return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))

    input_ids, labels = torch.arange(12).reshape(2, 6), torch.tensor([0, 1])
    model = Bert()
    loss = F.cross_entropy(model(input_ids, torch.ones(2, 6)), labels)
    loss.backward()


def vit(torch: Any) -> None:
    """A tiny ViT on PyTorch's own encoder layers."""
    nn, F = torch.nn, torch.nn.functional

    class ViT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 16, 4, stride=4)
            self.cls = nn.Parameter(torch.zeros(1, 1, 16))
            self.position = nn.Parameter(torch.zeros(1, 17, 16))
            layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
            self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)

        def forward(self, image: Any) -> Any:
            x = self.patches(image).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.position
            return self.head(self.norm(self.encoder(x)[:, 0]))

    images, labels = torch.randn(2, 3, 16, 16), torch.arange(2)
    model = ViT()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()


def gan(torch: Any) -> None:
    """One iteration of a GAN: the discriminator on real and detached images, then the generator."""
    nn, F = torch.nn, torch.nn.functional
    generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())
    discriminator = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    real, noise = torch.randn(4, 16), torch.randn(4, 8)
    ones, zeros = torch.ones(4, 1), torch.zeros(4, 1)
    fake = generator(noise)
    d_loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
    d_loss = d_loss + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
    d_loss.backward()
    g_loss = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
    g_loss.backward()


def gcn(torch: Any) -> None:
    """A graph convolutional network of two layers, with its adjacency normalized in the program."""
    nn, F = torch.nn, torch.nn.functional

    class GraphConv(nn.Module):
        def __init__(self, features: int, wider: int) -> None:
            super().__init__()
            self.linear = nn.Linear(features, wider, bias=False)
            self.bias = nn.Parameter(torch.zeros(wider))

        def forward(self, x: Any, adjacency: Any) -> Any:
            return adjacency @ self.linear(x) + self.bias

    class GCN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = GraphConv(5, 16), GraphConv(16, 3)

        def forward(self, x: Any, adjacency: Any) -> Any:
            h = F.dropout(F.relu(self.conv1(x, adjacency)), 0.5, self.training)
            return F.log_softmax(self.conv2(h, adjacency), dim=1)

    features, edges = torch.randn(6, 5), (torch.arange(36).reshape(6, 6) % 3 == 0).float()
    adjacency = edges + edges.T + torch.eye(6)
    scale = adjacency.sum(1) ** -0.5
    adjacency = scale[:, None] * adjacency * scale[None, :]
    labelled = torch.tensor([0, 2, 4])
    model = GCN()
    loss = F.nll_loss(model(features, adjacency)[labelled], torch.tensor([0, 1, 2]))
    loss.backward()


MODELS: dict[str, Callable[[Any], None]] = {
    "MLP": mlp,
    "CNN": cnn,
    "ResNet-18": resnet18,
    "U-Net": unet,
    "LSTM, 5 steps": lambda torch: lstm(torch, 5),
    "LSTM, 200 steps": lambda torch: lstm(torch, 200),
    "transformer, 4 layers": lambda torch: transformer(torch, 4),
    "transformer, 12 layers": lambda torch: transformer(torch, 12),
    "BERT": bert,
    "ViT": vit,
    "GAN": gan,
    "GCN": gcn,
}
"""By what the table calls them; each takes PyTorch or the built-in engine."""
