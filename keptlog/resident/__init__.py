"""Commands that a process carries out which has imported everything already: most of a command's time is imports.

    keptlog clean users                                    keptlog spark-server --address-file FILE
    [ client ] ─── FILE.commands ──────────────────────>   [ resident: all is imported, one thread, no connections ]
        │          stdin, stdout, stderr, words,              │ fork
        │          environment, folder, limits                ▼
        └────── signals ──────────────────────────────>    [ the command, a process of its own ] ── exit code ──> client

`place` says where the socket is, `likeness` whether what a resident has imported is what the client would import.
`handover` is the client, which imports next to nothing. `listener` forks, and `command` is what the fork does: it makes
itself the process that the client would have been.

Nobody needs a resident. A client that finds none, or one that is of another user, another version of the code or
another environment, does its command itself, and says nothing. Until a client has heard that its command is ready, and
has answered, nothing of it is done: so a command is never done twice.

Who kills the client kills the command. Who ends the resident lets the commands finish that it has begun.

It needs nothing but Python, and nothing here may import more.
"""
