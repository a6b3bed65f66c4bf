"""The REST contract as it is served: the same for every caller, so each format is generated once, which takes a second."""

from functools import cache

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class ContractView(SpectacularAPIView):
    @extend_schema(exclude=True)
    def get(self, request: Request, *_: object, **__: object) -> HttpResponse:
        renderer = request.accepted_renderer
        kind = f"{renderer.media_type}; charset={renderer.charset}" if renderer.charset else renderer.media_type
        headers = {"Content-Disposition": f'inline; filename="{self._get_filename(request, None)}"'}
        return HttpResponse(_document(type(renderer)), content_type=kind, headers=headers)


@cache
def _document(renderer: type[BaseRenderer]) -> bytes:
    return bytes(renderer().render(SchemaGenerator().get_schema(public=True)))
