"""What users write to say where: places, kinds of events, conditions; and breakpoints made of them.

#4            a node                 demo.py:4     what a line made, and a pass it began
x             by name                net.fc1       a module: where a call begins, where a pass comes to it
Mul           an operation           net.*         by a pattern
op:Mul        an operation, where a name is in the way

x if value > 3                       stop at the nodes called x whose value is greater than 3
on receive h                         stop whenever a part of the gradient of h arrives
on accumulate                        stop whenever a gradient is added to a .grad
on nan net.*                         stop where a nan appears in a module
change x.grad                        stop when the gradient of x changes
change norm(x.grad) > 3              stop when an expression gives something else
zeros(h) > 0.9                       stop at every new value of h, or of its gradient, for which this holds
finding vanishing net.*              stop where a check has found something, of this kind, about these nodes
"""
