"""Has the library h2 go on with the streams that a GOAWAY leaves open (RFC 9113 §6.8), whose frames it refuses."""

from h2.connection import ConnectionInputs, ConnectionState, H2ConnectionStateMachine

OPEN = ConnectionState.CLIENT_OPEN


def go_on_after_goaway() -> None:
    H2ConnectionStateMachine._transitions[OPEN, ConnectionInputs.RECV_GOAWAY] = (None, OPEN)
