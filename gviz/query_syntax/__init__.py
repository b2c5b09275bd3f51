"""The syntax users write to say where and when: places, moments, kinds of events, conditions, and breakpoints.

#4            a node                 demo.py:4     what a line created, and a pass it started
x             by name                net.fc1       a module: where a call begins, where a pass reaches it
mul           an operation           net.*         by a pattern
op:mul        an operation, if a name is the same
12, nan, iteration 3, 'mark          moments (`moment`); a place is a moment, too

x if value > 3                       stop at the nodes named x whose value is greater than 3
on receive h                         stop at each contribution to the gradient of h
on accumulate                        stop whenever a gradient is added to a .grad
on nan net.*                         stop where a nan appears in a module
change x.grad                        stop when the gradient of x changes
change norm(x.grad) > 3              stop when the value of an expression changes
zeros(h) > 0.9                       stop at every new value of h, or of its gradient, for which this is true
finding vanishing net.*              stop where a check has a finding, of this kind, about these nodes
"""
