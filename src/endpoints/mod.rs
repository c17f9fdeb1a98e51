//! The REST layer: routing, parameters, negotiation, discovery, encodings, watch framing.
