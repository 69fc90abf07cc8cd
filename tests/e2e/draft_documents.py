"""What front ends ask about drafts beyond the acceptance documents."""

from __future__ import annotations

DRAFT_CHANGES = """
mutation EmbryoUpdate(
  $embryo: ID!, $identity: EmbryoIdentityUpdateInput, $confirmed: [String!], $version: Int
) {
  embryoUpdate(
    input: {
      embryoId: $embryo, identity: $identity, confirmed: $confirmed, expectedVersion: $version
    }
  ) {
    embryo { id status version provisionalIdentity checklist { key isConfirmed } }
    errors { code message path }
  }
}
mutation EmbryoAbandon($embryo: ID!) {
  embryoAbandon(input: { embryoId: $embryo }) { deletedId errors { code message path } }
}
mutation EmbryoRehearsalClear($embryo: ID!) {
  embryoRehearsalClear(input: { embryoId: $embryo }) {
    embryo { id status version rehearsal { question } } errors { code message path }
  }
}
"""

DRAFT = """
query Draft($embryo: ID!) {
  node(id: $embryo) {
    ... on EmbryoDraft {
      id status version provisionalIdentity checklist { key isConfirmed }
      rehearsal { question answer model at }
    }
  }
}
"""

REHEARSAL = """
subscription Rehearsal($embryo: ID!, $text: String!) {
  embryoRehearsal(embryoId: $embryo, text: $text) {
    __typename
    ... on RehearsalDelta { channel text }
    ... on RehearsalFinished {
      turn { question answer model at }
      embryo { id status version rehearsal { question answer model at } }
    }
  }
}
"""
