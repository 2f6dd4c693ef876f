/** The version of everything here, as it is told to peers and people. */
export const VERSION = '0.1.0'
