package import WakeDispatch

/// One thing for each outlet of the engine: every loop has its own, and the webhooks have one together.
package struct PerOutlet<Element> {
    /// By loop number.
    package var loops: [Element]
    package var webhooks: Element

    package init(loops: [Element], webhooks: Element) {
        self.loops = loops
        self.webhooks = webhooks
    }

    /// The element that what is meant for `address` goes through.
    package subscript(address: StreamAddress) -> Element {
        switch address {
        case .stream(let stream), .faulted(let stream): self.loops[Int(stream.loop)]
        case .webhook, .webhookReport: self.webhooks
        }
    }
}

extension PerOutlet: Sendable where Element: Sendable {}
