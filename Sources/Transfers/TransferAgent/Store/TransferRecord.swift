import Wire

/// The specification of a transfer, as submitted.
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
    /// The HTTP method; nil for the default of the kind: GET for a download, PUT for an upload.
    package var method: String?
    package var headers: [Header] = []
    /// The path of the file to upload; nil for a download.
    package var file: String?
    package var sha256: String?
    package var bytesMax: Int64?
    /// The maximum time without a byte, in milliseconds; nil for the session's value.
    package var requestTimeout: Int64?
    package var note: String?

    package init(url: String) {
        self.url = url
    }
}

/// A file in the state folder with the received bytes of a download.
package struct PartFile: Hashable, Sendable {
    /// The name in the folder of files.
    package var file: String
    /// The validator of the entity for `If-Range`; nil if the server did not send a suitable one.
    package var validator: String?
    /// The total number of bytes; -1 while unknown.
    package var total: Int64
    /// The number of bytes that are certainly durable.
    package var synced: Int64
    /// The identifier of the boot in which the bytes after `synced` were written. After another boot, these bytes may
    /// be lost.
    package var boot: String

    package init(file: String, validator: String?, total: Int64, synced: Int64, boot: String) {
        self.file = file
        self.validator = validator
        self.total = total
        self.synced = synced
        self.boot = boot
    }
}

/// The further data of a transfer, which `Transfer` does not contain.
package struct TransferDetails: Hashable, Sendable {
    package struct Failure: Hashable, Sendable {
        package var reason: String
        package var message: String
        /// The number of consecutive attempts that failed in this way.
        package var repeats: Int

        package init(reason: String, message: String, repeats: Int = 1) {
            self.reason = reason
            self.message = message
            self.repeats = repeats
        }
    }

    /// The failure of the transfer or of its last attempt.
    package var failure: Failure?
    package var part: PartFile?
    /// The destination to which the finished file is being moved.
    package var destination: String?
    /// The SHA-256 of the finished file.
    package var sha256: String?

    package init() {}
}

// MARK: - Stored form

extension TransferSpec {
    var stored: [UInt8] {
        JSONWriter.object { json in
            json.member("url", self.url)
            json.member("method", ifPresent: self.method)
            if !self.headers.isEmpty {
                json.key("headers")
                json.beginArray()
                for header in self.headers {
                    json.string(header.name)
                    json.string(header.value)
                }
                json.endArray()
            }
            json.member("file", ifPresent: self.file)
            json.member("sha256", ifPresent: self.sha256)
            json.member("bytesMax", ifPresent: self.bytesMax)
            json.member("requestTimeout", ifPresent: self.requestTimeout)
            json.member("note", ifPresent: self.note)
        }
    }

    init?(stored: [UInt8]) {
        guard let value = JSONValue(stored), let url = value["url"]?.text else { return nil }
        self.init(url: url)
        self.method = value["method"]?.text
        let texts = value["headers"]?.elements.compactMap(\.text) ?? []
        for index in stride(from: 0, to: texts.count - 1, by: 2) {
            self.headers.append(Header(texts[index], texts[index + 1]))
        }
        self.file = value["file"]?.text
        self.sha256 = value["sha256"]?.text
        self.bytesMax = value["bytesMax"]?.integer
        self.requestTimeout = value["requestTimeout"]?.integer
        self.note = value["note"]?.text
    }
}

extension TransferDetails {
    var stored: [UInt8] {
        JSONWriter.object { json in
            if let failure = self.failure {
                json.member("reason", failure.reason)
                json.member("message", failure.message)
                if failure.repeats > 1 { json.member("repeats", failure.repeats) }
            }
            if let part = self.part {
                json.member("part", part.file)
                json.member("validator", ifPresent: part.validator)
                json.member("total", part.total)
                json.member("synced", part.synced)
                json.member("boot", part.boot)
            }
            json.member("taking", ifPresent: self.destination)
            json.member("sha256", ifPresent: self.sha256)
        }
    }

    init?(stored: [UInt8]) {
        guard let value = JSONValue(stored), case .object = value else { return nil }
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
        self.destination = value["taking"]?.text
        self.sha256 = value["sha256"]?.text
    }
}

/// A report to the gateway that the transfers of a session have ended.
package struct OutboxEntry: Hashable, Sendable {
    package let sequence: Int64
    package let device: String
    package let session: String
    package var finished: Int
    /// The identifier of the report, by which the gateway recognizes a repetition.
    package let event: String
    /// True if the gateway may have received the report.
    package var wasTried = false

    package init(sequence: Int64, device: String, session: String, finished: Int, event: String) {
        self.sequence = sequence
        self.device = device
        self.session = session
        self.finished = finished
        self.event = event
    }

    var stored: [UInt8] {
        JSONWriter.object { json in
            json.member("device", self.device)
            json.member("session", self.session)
            json.member("finished", self.finished)
            json.member("event", self.event)
            json.member("wasTried", self.wasTried)
        }
    }

    init?(sequence: Int64, stored: [UInt8]) {
        guard let value = JSONValue(stored),
            let device = value["device"]?.text, let session = value["session"]?.text,
            let finished = value["finished"]?.integer, let event = value["event"]?.text
        else { return nil }
        self.init(sequence: sequence, device: device, session: session, finished: Int(finished), event: event)
        self.wasTried = value["wasTried"]?.bool ?? true
    }
}

extension TransferSession {
    /// Writes the settings for an answer or for the store. Omits the timeouts, whose units differ between these two.
    func write(to json: inout JSONWriter) {
        json.member("device", self.device)
        json.member("topic", self.topic)
        json.member("discretionary", self.isDiscretionary)
        json.member("sendsLaunchEvents", self.sendsLaunchEvents)
        json.member("allowsMetered", self.allowsMetered)
        json.member("allowsConstrained", self.allowsConstrained)
        json.member("continuesAfterForceQuit", self.continuesAfterForceQuit)
        json.member("acceptsEarlyAnswers", self.acceptsEarlyAnswers)
        json.member("connectionsPerHost", self.connectionsPerHost)
    }
}

/// The stored form of a session.
struct StoredSession {
    let name: String
    let session: TransferSession
    /// The number of ended transfers whose end may not have reached a follower or the gateway.
    let unannouncedCount: Int
    /// True if the app was force-quit on the device, according to the gateway's last answer.
    var isForceQuit = false
}

extension StoredSession {
    var stored: [UInt8] {
        JSONWriter.object { json in
            json.member("name", self.name)
            self.session.write(to: &json)
            json.member("requestTimeout", self.session.requestTimeout)
            json.member("resourceTimeout", self.session.resourceTimeout)
            json.member("untold", self.unannouncedCount)
            json.member("isQuit", self.isForceQuit)
        }
    }

    init?(stored: [UInt8]) {
        guard let value = JSONValue(stored), let name = value["name"]?.text else { return nil }
        var session = TransferSession()
        session.device = value["device"]?.text
        session.topic = value["topic"]?.text
        session.isDiscretionary = value["discretionary"]?.bool ?? false
        session.sendsLaunchEvents = value["sendsLaunchEvents"]?.bool ?? true
        session.allowsMetered = value["allowsMetered"]?.bool ?? true
        session.allowsConstrained = value["allowsConstrained"]?.bool ?? true
        session.continuesAfterForceQuit = value["continuesAfterForceQuit"]?.bool ?? false
        session.acceptsEarlyAnswers = value["acceptsEarlyAnswers"]?.bool ?? false
        session.requestTimeout = value["requestTimeout"]?.integer ?? session.requestTimeout
        session.resourceTimeout = value["resourceTimeout"]?.integer ?? session.resourceTimeout
        session.connectionsPerHost = Int(value["connectionsPerHost"]?.integer ?? 6)
        self.init(name: name, session: session, unannouncedCount: Int(value["untold"]?.integer ?? 0))
        self.isForceQuit = value["isQuit"]?.bool ?? false
    }
}
