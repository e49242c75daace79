"""The contract ``ragged``: drafts of all requests in one array, as engines hold them."""
