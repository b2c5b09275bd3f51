"""``torch.utils.data``: samples, their order, and batches of them."""

from gviz.engine.missing import lookup_in
from gviz.engine.utils.data.collation import default_collate as default_collate
from gviz.engine.utils.data.collation import default_convert as default_convert
from gviz.engine.utils.data.datasets import ChainDataset as ChainDataset
from gviz.engine.utils.data.datasets import ConcatDataset as ConcatDataset
from gviz.engine.utils.data.datasets import Dataset as Dataset
from gviz.engine.utils.data.datasets import IterableDataset as IterableDataset
from gviz.engine.utils.data.datasets import StackDataset as StackDataset
from gviz.engine.utils.data.datasets import Subset as Subset
from gviz.engine.utils.data.datasets import TensorDataset as TensorDataset
from gviz.engine.utils.data.datasets import random_split as random_split
from gviz.engine.utils.data.loader import DataLoader as DataLoader
from gviz.engine.utils.data.loader import get_worker_info as get_worker_info
from gviz.engine.utils.data.samplers import BatchSampler as BatchSampler
from gviz.engine.utils.data.samplers import RandomSampler as RandomSampler
from gviz.engine.utils.data.samplers import Sampler as Sampler
from gviz.engine.utils.data.samplers import SequentialSampler as SequentialSampler
from gviz.engine.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from gviz.engine.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler

__getattr__ = lookup_in(__name__)
