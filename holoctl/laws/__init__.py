"""The laws: each is one text, for numbers and for expressions.

In: constraints with a border, and a tree, as `contract` has them. Out: efforts and motions.
No law knows how vectors are kept, where the motors sit, or what makes a result doubtful.
"""
