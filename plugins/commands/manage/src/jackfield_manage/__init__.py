"""What an installation is made of: what is there and why, whether it works, who agreed to it, and how to get it again.

Nothing of it is needed to load a plugin; that is `jackfield.plugins`.
"""
