"""How numbers, times and names are written for people.

numbers, times            ``counted`` ("1 log, 2 logs"), ``units`` (sizes and spans in people's units), ``iso_time``
what a person meant       ``meant_number`` ("7d" where digits are taken)
whose reason it is        ``named``
less room than a name     ``shortened``
what others wrote         ``harmless``, among our own lines
what we say again         ``advice``
what to run next          ``next_command``, ``holder_remedies`` (so that a holder lets go)
what is wrong             ``contradiction`` (files and state), ``no_text`` (bytes)
"""
