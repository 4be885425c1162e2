"""What doctor asks: ``home_doctor`` has the checks, the others look.

a home            ``home_doctor``, ``home_patient``; its place: ``place_doctor``; its disk:
                  ``disk_doctor``; its receipts and erasures: ``proof_doctor``
a catalog         ``catalog_doctor``
this machine      ``this_machine``
"""
