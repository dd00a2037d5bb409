import Wire

/// What a transfer is of, as it was submitted.
package struct TransferSpec: Hashable, Sendable {
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var url: String
    /// Nil for GET or PUT, as the kind has it.
    package var method: String?
    package var headers: [Header] = []
    /// The file that is sent.
    package var file: String?
    package var sha256: String?
    package var bytesMax: Int64?
    package var note: String?

    package init(url: String) {
        self.url = url
    }
}

/// A file of the state folder with what has come of a download.
package struct PartFile: Hashable, Sendable {
    /// The name in the folder of files.
    package var file: String
    /// What `If-Range` takes to mean the same entity; nil when the server gave nothing of the kind.
    package var validator: String?
    /// -1 while nobody has said.
    package var total: Int64
    /// How many bytes are on the disk for certain.
    package var synced: Int64
    /// The boot of the machine in which the others were written: after another one they may be gone.
    package var boot: String

    package init(file: String, validator: String?, total: Int64, synced: Int64, boot: String) {
        self.file = file
        self.validator = validator
        self.total = total
        self.synced = synced
        self.boot = boot
    }
}

/// What has become of a transfer, besides what `Transfer` knows.
package struct TransferFacts: Hashable, Sendable {
    package struct Failure: Hashable, Sendable {
        package var reason: String
        package var message: String
        /// The number of attempts in a row that failed in this way.
        package var repeats: Int

        package init(reason: String, message: String, repeats: Int = 1) {
            self.reason = reason
            self.message = message
            self.repeats = repeats
        }
    }

    /// Why it has failed, or what its last attempt came to.
    package var failure: Failure?
    package var part: PartFile?
    /// Where the finished file is being moved to.
    package var taking: String?
    /// The SHA-256 of the finished file.
    package var sha256: String?

    package init() {}
}

// MARK: - As they are stored

extension TransferSpec {
    var stored: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("url")
        json.string(self.url)
        json.optional("method", self.method)
        if !self.headers.isEmpty {
            json.key("headers")
            json.beginArray()
            for header in self.headers {
                json.string(header.name)
                json.string(header.value)
            }
            json.endArray()
        }
        json.optional("file", self.file)
        json.optional("sha256", self.sha256)
        if let most = self.bytesMax {
            json.key("bytesMax")
            json.integer(most)
        }
        json.optional("note", self.note)
        json.endObject()
        return json.buffer.view.array
    }

    init?(stored: [UInt8]) {
        guard let value = try? JSONReader.read(String(decoding: stored, as: UTF8.self)),
            let url = value["url"]?.text
        else { return nil }
        self.init(url: url)
        self.method = value["method"]?.text
        if case .array(let list)? = value["headers"] {
            let texts = list.compactMap(\.text)
            for index in stride(from: 0, to: texts.count - 1, by: 2) {
                self.headers.append(Header(texts[index], texts[index + 1]))
            }
        }
        self.file = value["file"]?.text
        self.sha256 = value["sha256"]?.text
        self.bytesMax = value["bytesMax"]?.integer
        self.note = value["note"]?.text
    }
}

extension TransferFacts {
    var stored: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        if let failure = self.failure {
            json.key("reason")
            json.string(failure.reason)
            json.key("message")
            json.string(failure.message)
            if failure.repeats > 1 {
                json.key("repeats")
                json.integer(Int64(failure.repeats))
            }
        }
        if let part = self.part {
            json.key("part")
            json.string(part.file)
            json.optional("validator", part.validator)
            json.key("total")
            json.integer(part.total)
            json.key("synced")
            json.integer(part.synced)
            json.key("boot")
            json.string(part.boot)
        }
        json.optional("taking", self.taking)
        json.optional("sha256", self.sha256)
        json.endObject()
        return json.buffer.view.array
    }

    init?(stored: [UInt8]) {
        guard let value = try? JSONReader.read(String(decoding: stored, as: UTF8.self)), case .object = value else {
            return nil
        }
        if let reason = value["reason"]?.text {
            let repeats = Int(clamping: value["repeats"]?.integer ?? 1)
            self.failure = Failure(reason: reason, message: value["message"]?.text ?? "", repeats: repeats)
        }
        if let file = value["part"]?.text {
            self.part = PartFile(
                file: file,
                validator: value["validator"]?.text,
                total: value["total"]?.integer ?? -1,
                synced: value["synced"]?.integer ?? 0,
                boot: value["boot"]?.text ?? ""
            )
        }
        self.taking = value["taking"]?.text
        self.sha256 = value["sha256"]?.text
    }
}

extension JSONWriter {
    /// A member that is there when it has a value.
    mutating func optional(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        self.key(name)
        self.string(value)
    }

    /// A member that is null when it has no value.
    mutating func nullable(_ name: StaticString, _ value: String?) {
        self.key(name)
        if let value { self.string(value) } else { self.null() }
    }

    /// A member that is null when it has no value.
    mutating func nullable(_ name: StaticString, _ value: Int64?) {
        self.key(name)
        if let value { self.integer(value) } else { self.null() }
    }
}

extension JSONValue {
    var text: String? {
        if case .string(let text) = self { return text }
        return nil
    }

    var integer: Int64? {
        if case .number(let number) = self { return Int64(number.text) }
        return nil
    }

    var flag: Bool? {
        if case .bool(let value) = self { return value }
        return nil
    }
}

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

/// A session as it is stored.
struct StoredSession {
    let name: String
    let session: TransferSession
    /// The number of ended transfers whose end is not known to have reached a follower or the gateway.
    let untold: Int
    /// Whether it stands for one that cannot be read.
    let isUnreadable: Bool

    init(name: String, session: TransferSession, untold: Int, isUnreadable: Bool = false) {
        self.name = name
        self.session = session
        self.untold = untold
        self.isUnreadable = isUnreadable
    }

    var stored: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("name")
        json.string(self.name)
        json.optional("device", self.session.device)
        json.optional("topic", self.session.topic)
        json.key("discretionary")
        json.bool(self.session.isDiscretionary)
        json.key("sendsLaunchEvents")
        json.bool(self.session.sendsLaunchEvents)
        json.key("allowsMetered")
        json.bool(self.session.allowsMetered)
        json.key("acceptsEarlyAnswers")
        json.bool(self.session.acceptsEarlyAnswers)
        json.key("requestTimeout")
        json.integer(self.session.requestTimeout)
        json.key("resourceTimeout")
        json.integer(self.session.resourceTimeout)
        json.key("connectionsPerHost")
        json.integer(self.session.connectionsPerHost)
        json.key("untold")
        json.integer(self.untold)
        json.endObject()
        return json.buffer.view.array
    }

    init?(stored: [UInt8]) {
        guard let value = try? JSONReader.read(String(decoding: stored, as: UTF8.self)), let name = value["name"]?.text
        else { return nil }
        var session = TransferSession()
        session.device = value["device"]?.text
        session.topic = value["topic"]?.text
        session.isDiscretionary = value["discretionary"]?.flag ?? false
        session.sendsLaunchEvents = value["sendsLaunchEvents"]?.flag ?? true
        session.allowsMetered = value["allowsMetered"]?.flag ?? true
        session.acceptsEarlyAnswers = value["acceptsEarlyAnswers"]?.flag ?? false
        session.requestTimeout = value["requestTimeout"]?.integer ?? session.requestTimeout
        session.resourceTimeout = value["resourceTimeout"]?.integer ?? session.resourceTimeout
        session.connectionsPerHost = Int(value["connectionsPerHost"]?.integer ?? 6)
        self.init(name: name, session: session, untold: Int(value["untold"]?.integer ?? 0))
    }
}
