"""The plain HTTP side of the product, for any WSGI server."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.config.settings")
application = get_wsgi_application()
