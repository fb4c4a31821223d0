"""Serves and calls the services of a generated module, from the descriptor of its one service.

Instead of grpcio-tools' own classes, so that one implementation serves all versions of a service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass


def serve(
    messages: ModuleType, methods: Mapping[str, Callable[..., Any]]
) -> grpc.GenericRpcHandler:
    """Return a handler of the module's service.

    A method is called with request and context, and gives an iterator where the answer is a stream;
    one that is missing is UNIMPLEMENTED for callers.
    """
    [service] = messages.DESCRIPTOR.services_by_name.values()
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for name, function in methods.items():
        method = service.methods_by_name[name]
        make: Any = (
            grpc.unary_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        handlers[name] = make(function, request.FromString, response.SerializeToString)
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def make_stub(messages: ModuleType, channel: grpc.Channel) -> Any:
    """Return a client of the module's service: its methods, each called with a request."""
    [service] = messages.DESCRIPTOR.services_by_name.values()
    calls = {}
    for name, method in service.methods_by_name.items():
        make: Any = channel.unary_stream if method.server_streaming else channel.unary_unary
        request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        calls[name] = make(
            f"/{service.full_name}/{name}", request.SerializeToString, response.FromString
        )
    return SimpleNamespace(**calls)
