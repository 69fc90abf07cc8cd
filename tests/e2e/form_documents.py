"""What front ends ask about outward forms and voices."""

from __future__ import annotations

FORM_CHANGES = """
fragment FormParts on Form {
  id kind status name description assetRef settledAt version settledBy { id } character { id }
}
mutation FormAnchorSet($input: FormAnchorSetInput!) {
  formAnchorSet(input: $input) {
    anchor {
      id stableTraits permissions taboos variableRange { feature range } version character { id }
    }
    errors { code message path }
  }
}
mutation FormPropose($input: FormProposeInput!) {
  formPropose(input: $input) { form { ...FormParts } errors { code message path } }
}
mutation FormSettle($form: ID!) {
  formSettle(input: { formId: $form }) { form { ...FormParts } errors { code message path } }
}
mutation FormReject($form: ID!) {
  formReject(input: { formId: $form }) { form { ...FormParts } errors { code message path } }
}
mutation FormRetire($form: ID!) {
  formRetire(input: { formId: $form }) { form { ...FormParts } errors { code message path } }
}
"""

VOICE_CHANGES = """
fragment VoiceParts on VoiceProfile {
  id name sourceKind sourceRef isCurrent isUsable hasAuthorization authorizationHint expiresAt
  version authorizedBy { id } character { id }
}
mutation VoiceAdd($input: VoiceAddInput!) {
  voiceAdd(input: $input) { voice { ...VoiceParts } errors { code message path } }
}
mutation VoiceAuthorizeClone($voice: ID!, $ref: String!, $until: DateTime) {
  voiceAuthorizeClone(
    input: { voiceId: $voice, authorizationRef: $ref, expiresAt: $until }
  ) { voice { ...VoiceParts } errors { code message path } }
}
mutation VoiceRevokeClone($voice: ID!) {
  voiceRevokeClone(input: { voiceId: $voice }) {
    voice { ...VoiceParts } errors { code message path }
  }
}
mutation VoiceAuthorizationRead($voice: ID!) {
  voiceAuthorizationRead(input: { voiceId: $voice }) {
    voice { id } authorization { authorizationRef } errors { code message path }
  }
}
mutation VoiceSelect($voice: ID!) {
  voiceSelect(input: { voiceId: $voice }) {
    voice { ...VoiceParts } errors { code message path }
  }
}
mutation VoiceRemove($voice: ID!) {
  voiceRemove(input: { voiceId: $voice }) {
    character { id voices { totalCount } } errors { code message path }
  }
}
"""

OUTWARD = """
query Outward($character: ID!, $status: FormStatus) {
  character(id: $character) {
    formAnchor { id taboos variableRange { feature range } version }
    forms(status: $status) { nodes { id status } totalCount }
    primaryForm { id description }
    voices { nodes { id isCurrent } totalCount }
    currentVoice { id }
  }
}
"""

ANCHOR = {
    "stableTraits": ["a scar over the left eye"],
    "permissions": ["armour"],
    "taboos": ["a beard"],
    "variableRange": [{"feature": "hair", "range": "black to silver"}],
}
FORM = {"kind": "PRIMARY", "name": "The guard", "description": "Grey cloak.", "assetRef": "a.png"}
