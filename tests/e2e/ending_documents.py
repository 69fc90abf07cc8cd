"""What front ends ask about seats and about the ends of lives."""

from __future__ import annotations

SEAT_CHANGES = """
fragment SeatParts on RuntimeSeat { id epoch leaseHolder leaseExpiresAt }
mutation SeatAcquire($character: ID!, $holder: String!, $lease: Int! = 30) {
  seatAcquire(input: { characterId: $character, holder: $holder, leaseSeconds: $lease }) {
    seat { ...SeatParts } errors { code message path }
  }
}
mutation SeatRenew($character: ID!, $holder: String!, $epoch: Int!, $lease: Int! = 30) {
  seatRenew(
    input: { characterId: $character, holder: $holder, epoch: $epoch, leaseSeconds: $lease }
  ) {
    seat { ...SeatParts } errors { code message path }
  }
}
mutation SeatRelease($character: ID!, $epoch: Int) {
  seatRelease(input: { characterId: $character, epoch: $epoch }) {
    seat { ...SeatParts } errors { code message path }
  }
}
mutation SeatMigrate($character: ID!) {
  seatMigrate(input: { characterId: $character }) {
    seat { ...SeatParts } errors { code message path }
  }
}
mutation SeatHandover($character: ID!, $holder: String!, $epoch: Int!, $lease: Int! = 30) {
  seatHandover(
    input: { characterId: $character, holder: $holder, epoch: $epoch, leaseSeconds: $lease }
  ) {
    seat { ...SeatParts } errors { code message path }
  }
}
"""

ENDING_CHANGES = """
mutation DeathRequest($character: ID!, $purpose: String!) {
  deathRequest(input: { characterId: $character, purpose: $purpose }) {
    petition {
      id kind status
      brief { action target purpose dataInvolved consequence reversibility }
    }
    errors { code message path }
  }
}
mutation Approve($petition: ID!) {
  petitionDecide(input: { petitionId: $petition, decision: APPROVE }) {
    petition { id status } errors { code message path }
  }
}
mutation DeathRevoke($character: ID!) {
  deathRevoke(input: { characterId: $character }) {
    character { id status diedAt } errors { code message path }
  }
}
mutation DataErase($character: ID!, $name: String!) {
  dataErase(input: { characterId: $character, name: $name }) {
    character {
      id name status identityBaseline erasedAt custodianship { status endedAt user { id } }
    }
    errors { code message path }
  }
}
"""

LIFE = """
query Life($character: ID!) {
  character(id: $character) {
    name status diedAt coolingOffUntil archivedAt erasedAt
    seat { id epoch leaseHolder }
    custodianship { id status startedAt endedAt user { id } }
    trees(first: 2) {
      nodes {
        topic
        nodes(first: 12) {
          nodes {
            id status content reasoning isErased contentVersion supersedes { id }
            citations { quote isErased sourceId source { id } }
          }
        }
        canonizations(first: 5) { nodes { isIntact snapshotDigest pathLength } }
      }
    }
  }
}
"""
