"""
The COMET tool's model, number for number, defects included.

`model` is the entry: it makes the `nest` of a mapping, walks it with a `state`, counts
`latency` (by `streams` and their `levels`, `pipeline`, `network`) and `energy` (by
`reuse`), and `report` prints what the tool prints.
"""
