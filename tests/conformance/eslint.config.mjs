// What graphql-eslint says of the schema: everything that it recommends, and what Relay needs.
import { fileURLToPath } from "node:url";
import graphql from "@graphql-eslint/eslint-plugin";

const schema = fileURLToPath(new URL("../../schema/schema.graphql", import.meta.url));

// Types that are no things of their own: they live within the one that holds them, and no client keeps them by an id.
const values = [
  "AgentAssignment",
  "BranchDiff",
  "Brief",
  "CachedModel",
  "CalendarEras",
  "CalendarTier",
  "CentralNode",
  "ChecklistPoint",
  "ClassifierStatus",
  "ContextPart",
  "CopiedRows",
  "EmbeddingSwap",
  "FieldChange",
  "FieldDifference",
  "FileWarning",
  "Graph",
  "GraphCentrality",
  "GraphCommunities",
  "GraphPath",
  "LibraryHit",
  "LibraryResult",
  "SearchHit",
  "SearchResult",
  "SearchScorePart",
  "LoreRecursion",
  "ModelCapabilities",
  "ModelChoice",
  "ModelRef",
  "OpenRegion",
  "ProbeSimulation",
  "RehearsalTurn",
  "RelationshipView",
  "RenderedTime",
  "ResolvedAt",
  "RetrievalCandidate",
  "RetrievalFloorRow",
  "RetrievalKeywordRow",
  "RetrievalPool",
  "RetrievalPreview",
  "RetrievalQuery",
  "RetrievalRedundancy",
  "ReversedAction",
  "ReversedChange",
  "RollbackWarning",
  "RowChange",
  "RowDifference",
  "RunContext",
  "RunError",
  "RunProgress",
  "SimilarRow",
  "SimulatedPool",
  "Stackable",
  "StoryDefinition",
  "StoryEmbedder",
  "StoryStyle",
  "TimePart",
  "TimeWarning",
  "TranslationCoverage",
  "TreeOutline",
  "UntranslatedText",
  "UpsertCounts",
  "UserError",
  "VariableFeature",
  "Visual",
  "VoiceAuthorization",
  "WorldCentralNode",
  "WorldCentrality",
  "WorldCommunities",
  "WorldDuplicate",
  "WorldGraph",
  "WorldPath",
];
// The account that asks has an id; who asks may be nobody.
const viewer = ["Viewer"];
// Known by their run, tree or branch and `seq`, which rises within it; those of a rehearsal are not kept.
const events = [
  "BranchEvent",
  "PhaseFinished",
  "PhaseStarted",
  "RehearsalDelta",
  "RehearsalFinished",
  "RunFinished",
  "RunStarted",
  "RunProgressed",
  "RunWarning",
  "StreamOpened",
  "TextDelta",
  "TreeEvent",
];

export default [
  {
    files: ["**/*.graphql"],
    plugins: { "@graphql-eslint": graphql },
    languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema } } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      ...graphql.configs["flat/schema-recommended"].rules,
      ...graphql.configs["flat/schema-relay"].rules,
      "@graphql-eslint/strict-id-in-types": [
        "error",
        {
          exceptions: {
            // Answers to one request.
            suffixes: ["Payload", "Connection", "Edge", "PageInfo"],
            types: [...values, ...viewer, ...events],
          },
        },
      ],
      // Lists that cannot grow beyond a bound are plain lists, and connections have their rows under `nodes` as well.
      // Which connections have nodes that are no Node is held by a test of ours: the rule knows no exceptions.
      "@graphql-eslint/relay-edge-types": [
        "error",
        { withEdgeSuffix: true, shouldImplementNode: false, listTypeCanWrapOnlyEdgeType: false },
      ],
    },
  },
];
