"""``torch.utils.data``: datasets of samples, samplers that order them, and a loader of batches.

``DataLoader.__iter__`` gets the indices of a batch from a sampler (`sampler.py`) and the samples at them from the
dataset (`dataset.py`), and `default_collate` stacks the samples (`collate.py`). All of it runs in the program's
process.
"""

from gviz.engine.unsupported_names import lookup_in
from gviz.engine.utils.data.collate import default_collate as default_collate
from gviz.engine.utils.data.collate import default_convert as default_convert
from gviz.engine.utils.data.dataloader import DataLoader as DataLoader
from gviz.engine.utils.data.dataloader import get_worker_info as get_worker_info
from gviz.engine.utils.data.dataset import ChainDataset as ChainDataset
from gviz.engine.utils.data.dataset import ConcatDataset as ConcatDataset
from gviz.engine.utils.data.dataset import Dataset as Dataset
from gviz.engine.utils.data.dataset import IterableDataset as IterableDataset
from gviz.engine.utils.data.dataset import StackDataset as StackDataset
from gviz.engine.utils.data.dataset import Subset as Subset
from gviz.engine.utils.data.dataset import TensorDataset as TensorDataset
from gviz.engine.utils.data.dataset import random_split as random_split
from gviz.engine.utils.data.sampler import BatchSampler as BatchSampler
from gviz.engine.utils.data.sampler import RandomSampler as RandomSampler
from gviz.engine.utils.data.sampler import Sampler as Sampler
from gviz.engine.utils.data.sampler import SequentialSampler as SequentialSampler
from gviz.engine.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from gviz.engine.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler

__getattr__ = lookup_in(__name__)
