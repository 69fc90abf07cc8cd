"""What front ends ask about identity records and petitions."""

from __future__ import annotations

IDENTITY_CHANGES = """
fragment PetitionParts on Petition {
  id kind status expiresAt decidedAt createdAt
  brief { action target purpose dataInvolved consequence reversibility }
  character { id version } run { id } requestedBy { id }
}
mutation IdentityChange($input: IdentityChangeInput!) {
  identityChange(input: $input) {
    petition { ...PetitionParts } errors { code message path }
  }
}
mutation PetitionDecide($petition: ID!, $decision: PetitionDecision!) {
  petitionDecide(input: { petitionId: $petition, decision: $decision }) {
    petition { ...PetitionParts }
    character { id name version identityBaseline }
    errors { code message path }
  }
}
mutation IdentityExport($character: ID!, $sections: [IdentitySection!]! = [IDENTITY, DATA]) {
  identityExport(input: { characterId: $character, sections: $sections }) {
    export { id format fileName mediaType sizeBytes url } errors { code message path }
  }
}
"""

DECIDE_NUMBERED = """
mutation ($petition: ID!) {
  petitionDecide(input: { petitionId: $petition, decision: APPROVE }) {
    petition { id } character { id } errors { code path hjCode }
  }
}
"""

IDENTITY = """
query Identity($character: ID!, $first: Int) {
  identitySigner
  character(id: $character) {
    name version identityBaseline
    identityRecord {
      id versionNo character { id } current { id versionNo }
      versions(first: $first) {
        nodes {
          id versionNo digest previousDigest signature signer isAuthentic package
          petition { id status } record { id }
        }
        totalCount
      }
    }
  }
}
"""

PETITIONS = """
query Petitions($status: PetitionStatus) {
  petitions(status: $status) { nodes { id status } totalCount }
}
"""

PETITION_EVENTS = "subscription { petitions { id kind status character { id } } }"
