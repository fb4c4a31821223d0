"""Questions and answers as lines of JSON, the same for ours and for Kubernetes' own code.

`ci/upstream` answers the same lines with the Go allocator and the Go CEL environment; that both
read and write one format is what makes their answers comparable. Pure: text in, text out.
"""

from reference_allocator.wire.allocate import CONTRACT, SHARE_ID, answer_allocate
from reference_allocator.wire.cel import answer_cel
from reference_allocator.wire.lines import MAX_LINE

__all__ = ["CONTRACT", "MAX_LINE", "SHARE_ID", "answer_allocate", "answer_cel"]
