import Wire

/// What callers are told, as bytes: answers and events.
enum AgentEvents {
    static func fault(_ fault: AgentFault) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("reason")
        json.string(fault.reason)
        json.key("message")
        json.string(fault.message)
        json.endObject()
        return json.buffer.view.array
    }

    static func submitted(_ id: TransferID) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("transfer")
        json.string("\(id)")
        json.endObject()
        return json.buffer.view.array
    }

    /// One event of a stream; `data` is JSON and has no line feed.
    static func event(_ name: String, _ data: [UInt8]) -> [UInt8] {
        Array("event: \(name)\ndata: ".utf8) + data + [0x0A, 0x0A]
    }

    static func progress(_ id: TransferID, _ bytes: Int64, _ total: Int64) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("transfer")
        json.string("\(id)")
        json.key("bytes")
        json.integer(bytes)
        json.nullable("total", total < 0 ? nil : total)
        json.endObject()
        return self.event("progress", json.buffer.view.array)
    }

    static func idle(_ session: String, _ counts: TransferCounts) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("session")
        json.string(session)
        json.key("finished")
        json.integer(counts[.finished])
        json.key("failed")
        json.integer(counts[.failed])
        json.endObject()
        return self.event("idle", json.buffer.view.array)
    }
}

extension JSONWriter {
    mutating func counts(_ counts: TransferCounts) {
        self.beginObject()
        for state in TransferState.allCases {
            self.key(state.name)
            self.integer(counts[state])
        }
        self.endObject()
    }

    /// Milliseconds as seconds.
    mutating func seconds(_ milliseconds: Int64) {
        if milliseconds % 1000 == 0 {
            self.integer(milliseconds / 1000)
        } else {
            self.number(Double(milliseconds) / 1000)
        }
    }
}
