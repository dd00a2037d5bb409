package import Engine
import Policy
package import Wire

/// One request of an operation, whose caller was admitted. Its views are valid during the call alone.
package struct OperationCall {
    package let caller: Caller
    package let afterFailedStore: AfterFailedStore
    /// What waits for the answer.
    package let reply: StreamAddress
    /// What stands at the place of the path's first parameter.
    package let parameter: ByteView
    /// What stands at that of the second; empty where there is none.
    package let secondParameter: ByteView
    package let query: ByteView
    package let body: ByteView
    /// What `PushTrace` keeps of the trace that a submission belongs to; empty where there is none.
    package let trace: ByteView
    package let services: GatewayServices

    package init(
        _ operation: Operation,
        by caller: Caller,
        reply: StreamAddress,
        parameter: ByteView,
        secondParameter: ByteView = ByteView(),
        query: ByteView,
        body: ByteView,
        trace: ByteView = ByteView(),
        services: GatewayServices
    ) {
        self.caller = caller
        self.afterFailedStore = operation.afterFailedStore
        self.reply = reply
        self.parameter = parameter
        self.secondParameter = secondParameter
        self.query = query
        self.body = body
        self.trace = trace
        self.services = services
    }

    /// The device whose token is the parameter.
    package func device() throws(APIError) -> Named<DeviceToken> {
        guard let token = DeviceToken(hex: self.parameter) else { throw .badDeviceToken }
        return Named(token)
    }

    /// The topic that is the parameter.
    package func topic() throws(APIError) -> [UInt8] {
        guard PushHead.isTopic(self.parameter) else { throw .badTopic }
        return self.parameter.array
    }

    /// The wake whose id is the parameter.
    package func wake() throws(APIError) -> Named<WakeID> {
        guard let wake = WakeID(self.parameter) else { throw .unknownWake }
        return Named(wake)
    }

    /// The identifier of a task that is the second parameter.
    package func identifier() throws(APIError) -> String {
        guard let name = self.taskName else { throw .badTaskIdentifier }
        return name
    }

    /// The name of a session that is the second parameter.
    package func session() throws(APIError) -> String {
        guard let name = self.taskName else { throw .badSessionName }
        return name
    }

    private var taskName: String? {
        let name = self.secondParameter.string
        return IdentifierPattern.isIdentifier(name.utf8) ? name : nil
    }
}
