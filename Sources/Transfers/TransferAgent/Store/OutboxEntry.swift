import Wire

/// What the gateway is to be told: transfers of a session have ended.
package struct OutboxEntry: Hashable, Sendable {
    package let sequence: Int64
    package let device: String
    package let session: String
    package var finished: Int
    /// The name of the event, by which the gateway counts it once.
    package let event: String
    /// Whether the gateway may have heard of it.
    package var wasTried = false

    package init(sequence: Int64, device: String, session: String, finished: Int, event: String) {
        self.sequence = sequence
        self.device = device
        self.session = session
        self.finished = finished
        self.event = event
    }

    var stored: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("device")
        json.string(self.device)
        json.key("session")
        json.string(self.session)
        json.key("finished")
        json.integer(self.finished)
        json.key("event")
        json.string(self.event)
        json.key("wasTried")
        json.bool(self.wasTried)
        json.endObject()
        return json.buffer.view.array
    }

    init?(sequence: Int64, stored: [UInt8]) {
        guard let value = try? JSONReader.read(String(decoding: stored, as: UTF8.self)),
            let device = value["device"]?.text, let session = value["session"]?.text,
            let finished = value["finished"]?.integer, let event = value["event"]?.text
        else { return nil }
        self.init(sequence: sequence, device: device, session: session, finished: Int(finished), event: event)
        self.wasTried = value["wasTried"]?.flag ?? true
    }
}
