package import Bytes

/// The traces that a wake belongs to; most belong to none.
package struct WakeTrace {
    /// What the push's sender said; nil when it said nothing.
    package let parent: TraceParent?
    /// The sender's `tracestate`; empty when there is none.
    package let state: ByteView
    /// The traces of older pushes that it stands for, the newest first.
    package let links: [TraceParent]
    /// How many more there were.
    package let linksDropped: UInt32

    package init(
        parent: TraceParent? = nil,
        state: ByteView = ByteView(),
        links: [TraceParent] = [],
        linksDropped: UInt32 = 0
    ) {
        self.parent = parent
        self.state = state
        self.links = links
        self.linksDropped = linksDropped
    }
}
