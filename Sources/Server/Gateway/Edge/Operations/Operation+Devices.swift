import Engine
package import Policy
package import Wire

extension Operation {
    /// The operations on devices, for workers and operators.
    package static let devices: [Operation] = [
        ofEngine("registerDevice", .post, "/v1/topics/{topic}/devices", on: .all, by: .worker, reaching: .topicInPath) {
            call throws(APIError) in
            let topic = try call.topic()
            let token = try Operation.registrationToken(call.body) ?? call.services.newDeviceToken()
            return .register(token, topic: topic)
        },
        ofEngine("removeDevice", .delete, "/v1/devices/{token}", on: .all, by: .worker) { call throws(APIError) in
            .unregister(try call.device())
        },
        ofEngine("conditions", .get, "/v1/devices/{token}/conditions", on: .all, by: .worker) { call throws(APIError) in
            .conditions(of: try call.device())
        },
        ofEngine("reportConditions", .patch, "/v1/devices/{token}/conditions", on: .all, by: .worker) {
            call throws(APIError) in
            let device = try call.device()
            let report = try ConditionsReport(try RequestBody.object(call.body, reason: "BadCondition"))
            return .conditions(device, report)
        },
        ofEngine("listDevices", .get, "/v1/devices", by: .operator) { call throws(APIError) in
            .devices(try DeviceQuestion(query: call.query))
        },
    ]

    /// Returns the token in the body of a registration; nil if the body contains none.
    private static func registrationToken(_ body: ByteView) throws(APIError) -> DeviceToken? {
        guard !body.isEmpty else { return nil }
        let object = try RequestBody.object(body, reason: "BadDeviceToken")
        if let other = object.members.map(\.name).first(where: { $0 != "token" }) {
            throw APIError(400, "BadDeviceToken", "\(other) is not a member of a registration; it takes token alone.")
        }
        switch object["token"] {
        case nil, .null?: return nil
        case let value?:
            guard let token = value.text?.withByteView({ DeviceToken(hex: $0) }) else { throw .badDeviceToken }
            return token
        }
    }
}

// MARK: - At the engine

extension EngineWork {
    /// Registers a device, new or known.
    package static func register(_ token: DeviceToken, topic: [UInt8]) -> EngineWork {
        EngineWork(registering: token, of: topic) { scope throws(APIError) in
            // A removed token may move to another topic, but only from a topic in the caller's scope.
            if scope.engine.find(token) != nil, Named(token).find(in: scope.engine, for: scope.caller) == nil {
                throw .otherTopic
            }
            switch topic.withByteView({ scope.dispatcher.register(token, topic: $0) }) {
            case .refused(.otherTopic): throw .otherTopic
            case .refused(let refusal):
                if let limit = refusal.limit { scope.room.limits.met(limit) }
                throw .full
            case .device, .newDevice:
                return .object(status: 201) { writer in
                    writer.hex("token") { token.writeHex(to: &$0) }
                    topic.withByteView { writer.member("topic", $0) }
                }
            }
        }
    }

    package static func unregister(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(changing: device, removesDevice: true) { scope, device in
            scope.dispatcher.unregister(device.index)
            return .outcome(.done)
        }
    }

    package static func conditions(_ device: Named<DeviceToken>, _ report: ConditionsReport) -> EngineWork {
        EngineWork(changing: device) { scope, device throws(APIError) in
            .outcome(.conditions(scope.dispatcher.conditions(report, try scope.registered(device))))
        }
    }

    /// Returns the current conditions of a device.
    package static func conditions(of device: Named<DeviceToken>) -> EngineWork {
        EngineWork(reading: device) { scope, device throws(APIError) in
            let snapshot = scope.workspace.snapshot(try scope.registered(device))
            return .outcome(.conditions(snapshot.state.conditions))
        }
    }

    /// Lists devices in the requested order.
    package static func devices(_ question: DeviceQuestion) -> EngineWork {
        EngineWork(.list(.devices(question))) { scope in
            let lastRead = scope.workspace.lastRead
            var search = scope.workspace.search(question, for: scope.caller)
            return .list(
                LongList(
                    search: { workspace in
                        let filter = question.searchFilter
                        let places = filter == nil ? LongList.placesMax : LongList.filteredPlacesMax
                        return workspace.engine.look(&search, placesMax: places, filter: filter)
                    },
                    write: { $0.write(question, search, lastRead: lastRead, to: &$1) }
                )
            )
        }
    }
}

extension Workspace {
    /// Appends the members of a list of devices: the devices that the search found and that match the question.
    ///
    /// - `lastRead`: the last device that was read; nil if all devices were read.
    fileprivate func write(
        _ question: DeviceQuestion,
        _ search: DeviceSearch,
        lastRead: DeviceToken?,
        to writer: inout JSONWriter
    ) {
        let filter = question.filter
        let isInOrder = question.order == .token
        var count = 0
        var next = search.isFull ? search.tokens.last : nil
        writer.beginArray("devices")
        for token in search.tokens {
            guard let device = self.engine.find(token) else { continue }
            let snapshot = self.engine.snapshot(device)
            guard filter.takes(snapshot), isInOrder || snapshot.state.pending != nil else { continue }
            snapshot.writeEntry(to: &writer, self.offset)
            count += 1
            guard count < question.limit else {
                if token != search.tokens.last || search.isFull { next = token }
                break
            }
        }
        writer.endArray()
        let more = (isInOrder ? next ?? lastRead : nil).flatMap { question.isPast($0) ? nil : $0 }
        writer.member("next", more) { writer, token in writer.hex { token.writeHex(to: &$0) } }
    }
}

// MARK: - Query

extension DeviceQuestion {
    private static let names = ["topic", "state", "hold", "prefix", "sort", "limit", "after"]

    /// Parses the query of a list of devices. Each parameter may occur at most once:
    /// `topic=<topic>&state=<state>&hold=<code>&prefix=<digits>&sort=<order>&limit=<count>&after=<next>`.
    ///
    /// - Throws: `APIError` with the parameter's name, the fault and the valid values.
    init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "state": self.state = try parameter.word(of: DeviceFilter.State.allCases) { $0.rawValue }
            case "hold": self.hold = try parameter.word(of: Hold.ofPushes) { $0.name.description }
            case "prefix":
                guard let prefix = parameter.value.withByteView({ TokenPrefix(hex: $0) }) else {
                    throw .badQuery("prefix is 1 to 200 hexadecimal digits, not \"\(parameter.value)\".")
                }
                self.prefix = prefix
            case "sort": self.order = try parameter.word(of: DeviceSearch.Order.listed) { $0.rawValue }
            case "limit": self.limit = try parameter.integer(Self.limits)
            case "after":
                guard let token = parameter.value.withByteView({ DeviceToken(hex: $0) }) else {
                    throw .badQuery("after is the next of an answer, not \"\(parameter.value)\".")
                }
                self.after = token
            default: throw parameter.unknown(among: Self.names, "devices are listed by topic, state, hold and prefix")
            }
        }
        guard self.order == .token || self.after == nil else {
            throw .badQuery("after continues a list in the order of tokens; omit sort=waiting.")
        }
    }
}
