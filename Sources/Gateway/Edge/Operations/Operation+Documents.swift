import Access
import Answers
import Bytes
import Dashboard
import EngineRoom

extension Operation {
    /// What the program carries within itself: the dashboard's page and the document of the interface.
    package static let documents = [dashboard, dashboardFile, openAPI]

    package static let dashboard = Operation(
        "dashboard",
        .get,
        "/",
        on: .admin,
        by: .anybody,
        reaching: .nothing,
        answers: [200],
        afterFailedStore: .answered
    ) { _ throws(APIError) in
        try Operation.page(DashboardFile.first)
    }

    package static let dashboardFile = Operation(
        "dashboardFile",
        .get,
        "/dashboard/{file}",
        on: .admin,
        by: .anybody,
        reaching: .nothing,
        answers: [200, 404],
        afterFailedStore: .answered
    ) { call throws(APIError) in
        try Operation.page(call.parameter.string)
    }

    package static let openAPI = Operation(
        "openAPI",
        .get,
        "/openapi.json",
        on: .admin,
        by: .operator,
        reaching: .nothing,
        answers: [200],
        afterFailedStore: .answered
    ) { _ in
        .answered(OperationAnswer(PackageResources.openapi_json))
    }

    /// What the page may do: run and ask what this listener serves, and nothing else.
    private static let contentPolicy: StaticString =
        """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    /// A file of the dashboard.
    private static func page(_ name: String) throws(APIError) -> OperationOutcome {
        guard let file = DashboardFile.find(name) else { throw .badPath }
        let fields: [(name: StaticString, value: StaticString)] = [
            ("content-security-policy", Self.contentPolicy),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            // Another version of the gateway has another page.
            ("cache-control", "no-cache"),
        ]
        return .answered(OperationAnswer(type: file.type, fields: fields, file.bytes))
    }
}
