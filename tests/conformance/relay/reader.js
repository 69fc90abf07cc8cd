// What a front end with Relay asks for: only compiled, never run.
import { graphql } from "relay-runtime";

export const pages = graphql`
  fragment reader_nodes on MirrorTree
  @argumentDefinitions(count: { type: "Int", defaultValue: 2 }, cursor: { type: "String" })
  @refetchable(queryName: "readerNodesQuery") {
    nodes(first: $count, after: $cursor) @connection(key: "reader_nodes") {
      edges {
        node {
          content
          run {
            ...reader_run
          }
        }
      }
    }
  }
`;

export const run = graphql`
  fragment reader_run on Run @refetchable(queryName: "readerRunQuery") {
    status
    finishReason
  }
`;

export const characters = graphql`
  fragment reader_characters on Query
  @argumentDefinitions(count: { type: "Int", defaultValue: 2 }, cursor: { type: "String" })
  @refetchable(queryName: "readerCharactersQuery") {
    characters(last: $count, before: $cursor) @connection(key: "reader_characters") {
      edges {
        node {
          name
        }
      }
    }
  }
`;

export const query = graphql`
  query readerQuery($tree: ID!) {
    mirrorTree(id: $tree) {
      topic
      ...reader_nodes
    }
    ...reader_characters
  }
`;

export const ask = graphql`
  mutation readerAskMutation($tree: ID!, $text: String!, $connections: [ID!]!) {
    treeAsk(input: { treeId: $tree, text: $text }) {
      question @appendNode(connections: $connections, edgeTypeName: "TreeNodeEdge") {
        content
      }
      run {
        ...reader_run
      }
      errors {
        code
        message
        path
      }
    }
  }
`;

export const events = graphql`
  subscription readerSubscription($run: ID!, $after: Int) {
    runEvents(runId: $run, after: $after) {
      __typename
      seq
      ... on TextDelta {
        channel
        text
      }
      ... on RunFinished {
        status
        node {
          content
        }
      }
    }
  }
`;
