"""What `first_load.py` needs: a slow network, JupyterLite, and what a visit cost."""
