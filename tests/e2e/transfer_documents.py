"""What front ends ask about imports, lorebooks and exports beyond the acceptance documents."""

from __future__ import annotations

TRANSFER_CHANGES = """
mutation LorebookEntryReview($entries: [ID!]!, $decision: ReviewDecision!) {
  lorebookEntryReview(input: { entryIds: $entries, decision: $decision }) {
    entries { id reviewStatus version lorebook { id } } errors { code message path }
  }
}
mutation LorebookEntryUpdate($input: LorebookEntryUpdateInput!) {
  lorebookEntryUpdate(input: $input) {
    entry { id name keys content sticky probability version } errors { code message path }
  }
}
mutation LorebookDelete($lorebook: ID!) {
  lorebookDelete(input: { lorebookId: $lorebook }) { deletedId errors { code message path } }
}
mutation CardExport($embryo: ID, $character: ID, $format: ExportFormat! = CARD_V3_JSON) {
  cardExport(input: { embryoId: $embryo, characterId: $character, format: $format }) {
    export { id format fileName mediaType sizeBytes url expiresAt }
    errors { code message path }
  }
}
"""

# By upload: the card with all that was made of it, and a lorebook of its own.
CARD_TAKEN = """
mutation CardImport($file: Upload!) {
  cardImport(input: { file: $file }) {
    embryo {
      id
      provisionalIdentity
      lorebooks { nodes { id name entries { nodes { keys content source } } } }
    }
    job { id status }
    warnings { code message path }
    errors { code message path }
  }
}
"""


def lorebook_taken(character: str | None = None) -> str:
    """A lorebook for a character, or for nobody but its owner."""
    of_character = f', characterId: "{character}"' if character else ""
    return f"""
    mutation LorebookImport($file: Upload!) {{
      lorebookImport(input: {{ file: $file{of_character} }}) {{
        lorebook {{ id name character {{ id }} entries {{ nodes {{ id content }} }} }}
        job {{ id kind status items {{ nodes {{ id label status }} }} }}
        warnings {{ code path }}
        errors {{ code message path }}
      }}
    }}
    """


TRANSFERS = """
query Transfers($first: Int) {
  importJobs(first: $first) {
    totalCount
    nodes {
      id kind status fileName container spec sizeBytes warnings { code path }
      finishedAt
      items {
        nodes {
          number kind status label mediaType sizeBytes warnings { code } decidedAt
          target { __typename id }
        }
      }
      embryo { id importJob { id } }
      lorebook { id }
    }
  }
  lorebooks(first: $first) {
    totalCount
    nodes {
      id name scanDepth tokenBudget isRecursive
      character { id } embryo { id }
      all: entries { totalCount nodes { id } }
      waiting: entries(reviewStatus: PENDING_REVIEW, first: 0) { totalCount }
    }
  }
}
"""
