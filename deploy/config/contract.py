"""The REST contract as it is served: the same for every caller, so each format is generated once, which takes a second."""

from functools import cache

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request


class ContractView(SpectacularAPIView):
    @extend_schema(exclude=True)
    def get(self, request: Request, *_: object, **__: object) -> HttpResponse:
        renderer = request.accepted_renderer
        kind = f"{renderer.media_type}; charset={renderer.charset}" if renderer.charset else renderer.media_type
        headers = {"Content-Disposition": f'inline; filename="Convoy.{renderer.format}"'}
        return HttpResponse(_document(renderer.format), content_type=kind, headers=headers)


@cache
def _document(form: str) -> str | bytes:
    renderer = next(each for each in ContractView.renderer_classes if each.format == form)
    schema = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]  # neither has types
    return renderer().render(schema)
