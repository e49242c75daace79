"""Rules for drafters with another vocabulary that compare text: SLEM, SLRS and its forms."""
