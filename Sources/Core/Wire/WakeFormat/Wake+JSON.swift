extension Wake {
    /// Writes the wake as a JSON object on one line: what a stream's event and a webhook's request carry.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("wake")
        writer.hex { self.id.write(to: &$0) }
        writer.key("kind")
        writer.string(self.kind.name)
        writer.key("device")
        writer.hex { self.device.writeHex(to: &$0) }
        writer.key("topic")
        writer.string(self.topic)
        if let work = self.work {
            work.writeMembers(to: &writer)
            self.terms.writeTaskMembers(to: &writer)
            self.trace.writeMembers(to: &writer)
            work.writeTexts(to: &writer)
        } else {
            self.writePushMembers(to: &writer)
        }
        writer.endObject()
    }

    private func writePushMembers(to writer: inout JSONWriter) {
        writer.key("apnsID")
        if let push = self.push { writer.hex { push.apnsID.write(to: &$0) } } else { writer.null() }
        self.terms.writeMembers(to: &writer)
        self.push?.trace.writeMembers(to: &writer)
        writer.key("collapseID")
        if let push = self.push, !push.collapseID.isEmpty { writer.string(push.collapseID) } else { writer.null() }
        writer.key("payload")
        if let push = self.push { writer.line(push.payload) } else { writer.null() }
    }
}

extension Wake.Work {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        switch self {
        case .task(let identifier, _, _, _):
            writer.key("task")
            writer.string(identifier)
        case .session(let name, let count):
            writer.key("session")
            writer.string(name)
            writer.key("count")
            writer.integer(count)
        }
    }

    fileprivate func writeTexts(to writer: inout JSONWriter) {
        guard case .task(_, let title, let subtitle, let resumption) = self else { return }
        Self.write(title: title, subtitle: subtitle, to: &writer)
        switch resumption {
        case nil: break
        case .nothingTold?:
            writer.key("resumedFrom")
            writer.null()
        case .progress(let completed, let total, let title, let subtitle)?:
            writer.key("resumedFrom")
            writer.beginObject()
            writer.key("completed")
            writer.integer(completed)
            writer.key("total")
            writer.integer(total)
            Self.write(title: title, subtitle: subtitle, to: &writer)
            writer.endObject()
        }
    }

    private static func write(title: ByteView, subtitle: ByteView, to writer: inout JSONWriter) {
        if !title.isEmpty {
            writer.key("title")
            writer.string(title)
        }
        if !subtitle.isEmpty {
            writer.key("subtitle")
            writer.string(subtitle)
        }
    }
}

extension Wake.Terms {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        writer.key("priority")
        writer.integer(Int64(self.priority))
        writer.key("attempt")
        writer.integer(Int64(self.attempt))
        writer.key("coalesced")
        writer.integer(Int64(self.coalesced))
        writer.key("receivedAt")
        writer.integer(self.receivedAt)
        writer.key("firstReceivedAt")
        writer.integer(self.firstReceivedAt)
        self.writeTime(to: &writer)
    }

    fileprivate func writeTaskMembers(to writer: inout JSONWriter) {
        writer.key("attempt")
        writer.integer(Int64(self.attempt))
        writer.key("submittedAt")
        writer.integer(self.receivedAt)
        self.writeTime(to: &writer)
    }

    private func writeTime(to writer: inout JSONWriter) {
        writer.key("deadline")
        writer.integer(self.deadline)
        writer.key("timeLeft")
        writer.integer(self.timeLeft)
    }
}

extension WakeTrace {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        if let parent = self.parent {
            writer.key("traceparent")
            writer.hex { parent.write(to: &$0) }
        }
        if !self.state.isEmpty {
            writer.key("tracestate")
            writer.string(self.state)
        }
        guard !self.links.isEmpty else { return }
        writer.key("traceLinks")
        writer.beginArray()
        for link in self.links { writer.hex { link.write(to: &$0) } }
        writer.endArray()
        guard self.linksDropped > 0 else { return }
        writer.key("traceLinksDropped")
        writer.integer(self.linksDropped)
    }
}

extension Wake {
    /// Writes the event that tells of the wake on its worker's stream. The writer is to be empty.
    package func writeEvent(to writer: inout JSONWriter) {
        writer.buffer.append("event: wake\nid: ")
        self.id.write(to: &writer.buffer)
        writer.buffer.append("\ndata: ")
        self.write(to: &writer)
        writer.buffer.append("\n\n")
    }
}
