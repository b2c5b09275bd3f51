"""What an expression may ask of a tensor."""

from __future__ import annotations

_METHODS = """
abs all any argmax argmin argsort astype clip copy cumprod cumsum diagonal dot flatten item max mean min nonzero
norm prod ptp ravel round sort squeeze std sum trace transpose var count endswith find index isdigit lower
lstrip rstrip split startswith strip upper
"""
METHODS = frozenset(_METHODS.split())

_FACTS = """
T dtype imag ndim real shape size itemsize nbytes
"""
FACTS = frozenset(_FACTS.split())
